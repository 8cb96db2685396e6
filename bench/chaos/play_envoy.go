package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	rush "github.com/ringlimit/ringlimit/bench/load" // load is that of a scenario
	"github.com/ringlimit/ringlimit/client"
)

const (
	envoyWaits   = 20 * time.Millisecond // by default
	envoyCallers = 32
	envoyPace    = 20 * time.Millisecond // between two calls of one
	envoyTenants = 64
	besideEnvoy  = 64    // callers that ask without a pause meanwhile
	envoyInTime  = 0.995 // of the answers, within what Envoy waits: the rest is the machine's, which has no processor idle
)

// playEnvoy asks all nodes as Envoy does, beside a load that leaves no processor idle, and
// reads from the nodes how long their answers took.
func playEnvoy(ctx context.Context, a *arena, rounds int) error {
	lib, err := newLibrary(a.fleet.GRPC())
	if err != nil {
		return err
	}
	defer lib.close()
	lasts := time.Duration(rounds) * a.lasting(10*time.Second, 5*time.Second)
	loaded := make(chan rush.Report, 1)
	go func() {
		target := rush.Cluster(lib.Client, func(i int64) client.Request {
			return client.Request{Tenant: fmt.Sprint("beside-", i%1000), Plan: "wide", Cost: 1}
		})
		r, _ := rush.Against(ctx, target, rush.Config{Duration: lasts + time.Second, Concurrency: besideEnvoy, Batch: 1, Keys: 1, Cost: 1, Timeout: patience})
		loaded <- r
	}()
	e, err := a.askAsEnvoy(ctx, lasts)
	beside := <-loaded
	if err != nil {
		return err
	}
	if err := e.nodes(ctx, a); err != nil {
		return err
	}
	r, given := a.report, e.answered.Load()
	r.violate("all", e.wrong...)
	if e.soon < envoyInTime*e.all {
		r.violate("all", fmt.Sprintf("%.0f of %.0f answers left their node within %v, want %.1f %%", e.soon, e.all, envoyWaits, 100*envoyInTime))
	}
	r.show("calls", "%d in %v, %d answered (%d by the failure mode) and %d not within %v", given+e.late.Load(), lasts, given, e.degraded.Load(), e.late.Load(), envoyWaits)
	r.show("answers", "%.0f by nodes: %.0f within 5 ms, %.0f in 15, %.0f in 20", e.all, e.quick, e.early, e.soon)
	r.show("beside them", "%.0f decisions/s, p99 %v", beside.Rate, time.Duration(beside.P99)*time.Microsecond)
	if given < 1000 || beside.Errors > beside.Requests/1000 {
		r.doubt("%d answers, %d of %d takes beside them failed: %s", given, beside.Errors, beside.Requests, beside.Error)
	}
	r.Rounds += rounds
	return nil
}

// asEnvoy is what became of calls, as callers and as nodes saw it.
type asEnvoy struct {
	answered, degraded, late atomic.Int64
	wrong                    []string
	all, quick, early, soon  float64 // answers of nodes, and those within 5, 15 and 20 ms
}

// askAsEnvoy keeps callers going that wait as long as Envoy does.
func (a *arena) askAsEnvoy(ctx context.Context, lasts time.Duration) (*asEnvoy, error) {
	e := new(asEnvoy)
	nodes := make([]rls.RateLimitServiceClient, len(a.fleet.Nodes))
	for i, n := range a.fleet.Nodes {
		conn, err := n.Dial()
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		nodes[i] = rls.NewRateLimitServiceClient(conn)
	}
	wrong := make([]string, envoyCallers)
	end := time.Now().Add(lasts)
	inParallel(envoyCallers, envoyCallers, func(caller int) {
		for i := caller; time.Now().Before(end) && pause(ctx, envoyPace) == nil; i++ {
			if err := e.ask(ctx, nodes[i%len(nodes)], fmt.Sprint("edge-", i%envoyTenants)); err != nil {
				wrong[caller] = err.Error()
			}
		}
	})
	for _, w := range wrong {
		if w != "" {
			e.wrong = append(e.wrong, w)
		}
	}
	return e, ctx.Err()
}

// ask makes one call. That it has no answer in time is counted; any other end is an error.
func (e *asEnvoy) ask(ctx context.Context, node rls.RateLimitServiceClient, tenant string) error {
	ctx, cancel := context.WithTimeout(ctx, envoyWaits)
	defer cancel()
	r, err := node.ShouldRateLimit(ctx, &rls.RateLimitRequest{Domain: "edge", Descriptors: []*common.RateLimitDescriptor{
		{Entries: []*common.RateLimitDescriptor_Entry{{Key: "tenant", Value: tenant}}},
	}})
	switch {
	case status.Code(err) == codes.DeadlineExceeded:
		e.late.Add(1)
		return nil
	case err != nil:
		return fmt.Errorf("a call failed: %w", err)
	}
	e.answered.Add(1)
	mode := r.GetDynamicMetadata().GetFields()["degraded"].GetStringValue()
	if mode != "" {
		e.degraded.Add(1)
	}
	if r.GetOverallCode() != rls.RateLimitResponse_OK && mode == "" {
		return fmt.Errorf("answered %v from a bucket that is never empty", r)
	}
	return nil
}

// nodes reads from all nodes how long their answers took.
func (e *asEnvoy) nodes(ctx context.Context, a *arena) error {
	const took = "ringlimit_envoy_answer_seconds"
	for name, into := range map[string]*float64{
		took + "_count": &e.all, took + `_bucket{le="0.005"}`: &e.quick, took + `_bucket{le="0.015"}`: &e.early, took + `_bucket{le="0.02"}`: &e.soon,
	} {
		for _, n := range a.fleet.Nodes {
			v, err := n.Metric(ctx, name)
			if err != nil {
				return err
			}
			*into += v
		}
	}
	return nil
}

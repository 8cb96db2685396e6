package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// modal is four client libraries as applications have them, under way all the time.
type modal struct {
	a       *arena
	tenant  string // so that all plans are one group's
	clients [len(modePlans)]*client.Client
	stop    context.CancelFunc
	callers sync.WaitGroup

	mu    sync.Mutex // guards calls
	calls []modeCall

	opened time.Duration // the first answer of the outage that `open` is in; 0: none yet
}

// modeCall is one call and its answer. Times are since the arena began.
type modeCall struct {
	client    int
	plan      string
	call, ret time.Duration
	d         client.Decision
	err       error
}

// start begins the callers.
func (m *modal) start(ctx context.Context) {
	ctx, m.stop = context.WithCancel(ctx)
	for i, plan := range modePlans {
		for range modeCallers {
			m.callers.Go(func() {
				for pause(ctx, modePace) == nil {
					m.ask(i, plan, m.tenant)
				}
			})
		}
	}
}

// end waits for the callers.
func (m *modal) end() {
	m.stop()
	m.callers.Wait()
}

// ask makes one call, with the client's own deadline, and notes it.
func (m *modal) ask(i int, plan, tenant string) modeCall {
	c := modeCall{client: i, plan: plan, call: time.Since(m.a.began)}
	c.d, c.err = m.clients[i].Decide(context.Background(), client.Request{Tenant: tenant, Plan: plan})
	c.ret = time.Since(m.a.began)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, c)
	return c
}

// since returns the calls that began at or after from.
func (m *modal) since(from time.Duration) (calls []modeCall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.calls {
		if c.call >= from {
			calls = append(calls, c)
		}
	}
	return calls
}

// lastOpen is when `open` was last decided without the cluster.
func (m *modal) lastOpen() (last time.Duration) {
	for _, c := range m.since(0) {
		if c.plan == "open" && c.d.Degraded {
			last = max(last, c.ret)
		}
	}
	return last
}

// judgeCounts: every answer that says that it is degraded is counted, and no other.
func (m *modal) judgeCounts() {
	var said [len(modePlans)]uint64
	for _, c := range m.since(0) {
		if c.d.Degraded {
			said[c.client]++
		}
	}
	total := uint64(0)
	for i, c := range m.clients {
		n := c.Stats().Degraded
		if total += n; n != said[i] {
			m.a.report.violate("all", fmt.Sprintf("client %d gave %d degraded answers and counted %d", i, said[i], n))
		}
	}
	m.a.report.show("degraded", "%d answers, as many counted", total)
}

package client

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// byPlan allows all and says which plan it was asked for, so that no answer can be
// taken for another's.
func byPlan(_ context.Context, m *pb.StreamRequest) []*pb.Result {
	return each(m, func(q *pb.DecideRequest) *pb.Result {
		return &pb.Result{Decision: &pb.Decision{Allowed: true, PolicyId: q.Subject.Plan, PolicyVersion: 1}}
	})
}

// plans is requests of all modes, in turn.
func plans(n int, of ...string) []Request {
	requests := make([]Request, n)
	for i := range requests {
		requests[i] = planned(of[i%len(of)])
	}
	return requests
}

// TestBatchIsDecidedByEachRequestsMode: each request waits for its own time, and a
// late answer of the cluster is counted and changes nothing that the caller has.
func TestBatchIsDecidedByEachRequestsMode(t *testing.T) {
	outages(t, one, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.nodes["a"].answer(func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			time.Sleep(200 * time.Millisecond)
			return byPlan(ctx, m)
		})
		began := time.Now()
		requests := append(plans(30, "local", "closed", "open"), Request{Tenant: "acme", Cost: -1})
		results, err := c[0].DecideBatch(t.Context(), requests)
		if took := time.Since(began); err != nil || took < 80*time.Millisecond || took > 80*time.Millisecond+clockStep {
			t.Errorf("%v after %v", err, took)
		}
		if !errors.Is(results[30].Err, fault.InvalidArgument) {
			t.Errorf("a bad request: %+v", results[30])
		}
		for i, r := range results[:30] {
			mode := FailureMode(requests[i].Plan) // policies are called by their modes
			if r.Err != nil || !r.Degraded || r.FailureMode != mode || r.PolicyID != requests[i].Plan || r.Allowed == (mode == ModeClosed) {
				t.Errorf("%s: %+v", mode, r)
			}
		}
		told := slices.Clone(results)
		time.Sleep(time.Second)
		if !reflect.DeepEqual(told, results) {
			t.Error("late answers changed what the caller was told")
		}
		if s := c[0].Stats(); s.Degraded != 30 || s.Late != 30 || s.LateAllowed != 30 || s.Requests != 30 {
			t.Errorf("%+v", s)
		}
	})
}

// TestBatchIsDecidedWhenItsCallerCanWaitNoLonger: what the cluster has answered stands.
func TestBatchIsDecidedWhenItsCallerCanWaitNoLonger(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.change(func(r *pb.Routing) { r.Groups[1].Grpc, r.Groups[1].Term = "b", 2 })
		synctest.Wait()
		f.nodes["a"].answer(byPlan)
		f.nodes["b"].answer(silent)
		requests := plans(64, "closed")
		for i := range requests {
			requests[i].Tenant = string(rune('A' + i))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Millisecond)
		defer cancel()
		results, err := c[0].DecideBatch(ctx, requests)
		if err != nil {
			t.Error(err)
		}
		degraded := 0
		for _, r := range results {
			if r.Err != nil || r.Allowed == r.Degraded || r.PolicyID != "closed" {
				t.Errorf("%+v", r)
			}
			if r.Degraded {
				degraded++
			}
		}
		if degraded != len(f.nodes["b"].requests()) || degraded == 0 || degraded == len(requests) {
			t.Errorf("%d of %d degraded, %d were sent to the silent node", degraded, len(requests), len(f.nodes["b"].requests()))
		}
	})
}

// TestBatchIsNotSentWhereNobodyListens: its calls are placed nowhere, and each is
// counted out once, so that the batch ends after the last.
func TestBatchIsNotSentWhereNobodyListens(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.each((*fakeNode).kill)
		time.Sleep(time.Second)
		parked := c[0].Stats().Parked
		requests := plans(9, "local", "closed", "patient")
		b := c[0].newBatch(t.Context(), requests, make([]Result, len(requests)), nil)
		c[0].sendAll(b)
		if n := b.left.Load(); n != 1 {
			t.Errorf("%d to come after all were skipped, want that of the sending", n)
		}
		select {
		case <-b.done:
			t.Error("done before all were sent")
		default:
		}
		if b.ended(1); c[0].Stats().Parked != parked {
			t.Error("calls were parked")
		}
		if _, ended := <-b.done; ended || c[0].acks.mark.Load() != c[0].sequence.Load() {
			t.Errorf("ended up to %d, want %d", c[0].acks.mark.Load(), c[0].sequence.Load())
		}
	})
}

// TestBatchesThroughAnOutage: each request is decided once and by its own policies,
// whatever becomes of the memory of the batch before.
func TestBatchesThroughAnOutage(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.each(func(n *fakeNode) { n.answer(byPlan) })
		var degraded, asked atomic.Int64
		var callers sync.WaitGroup
		began := time.Now()
		for i := range 20 {
			requests := plans(1+3*i, "local", "closed", "open")
			callers.Go(func() {
				for time.Since(began) < 6*time.Second {
					results, err := c[0].DecideBatch(t.Context(), requests)
					if err != nil {
						t.Error(err)
					}
					for j, r := range results {
						if r.Err != nil || r.PolicyID != requests[j].Plan || r.Degraded && string(r.FailureMode) != requests[j].Plan {
							t.Errorf("%s: %+v", requests[j].Plan, r)
						}
						if asked.Add(1); r.Degraded {
							degraded.Add(1)
						}
					}
					time.Sleep(7 * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Second)
		f.each((*fakeNode).hang)
		time.Sleep(time.Second)
		f.each((*fakeNode).kill)
		time.Sleep(time.Second)
		f.each(func(n *fakeNode) { n.resume(); n.start() })
		callers.Wait()
		if n := m.of("ringlimit.client.degraded"); n != degraded.Load() || n < 1000 || n > asked.Load()/2 {
			t.Errorf("%d of %d answers degraded, the metric says %d", degraded.Load(), asked.Load(), n)
		}
		if n := c[0].Stats().Requests; n != uint64(asked.Load()) {
			t.Errorf("%d requests counted, want %d", n, asked.Load())
		}
	})
}

// TestLateAnswerOfACallThatFailed: also an error was told beside a charge.
func TestLateAnswerOfACallThatFailed(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		for c[0].budget.spend() { // nothing is left for retries
		}
		f.nodes["a"].answer(func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			time.Sleep(700 * time.Millisecond)
			return byPlan(ctx, m)
		})
		f.nodes["b"].answer(refuse(fault.New(fault.Busy, "queue is full")))
		time.AfterFunc(300*time.Millisecond, func() { f.lead("b", 2) })
		if d, _, err := decide(t, c[0], planned("patient")); !errors.Is(err, fault.OutcomeUnknown) {
			t.Errorf("%+v, %v", d, err)
		}
		if s := c[0].Stats(); s.Late != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Second)
		if s := c[0].Stats(); s.Late != 1 || s.LateAllowed != 1 || s.Degraded != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestOverloadAfterAnUnknownOutcome is an overload: only exact policies are told that
// the call may have been charged.
func TestOverloadAfterAnUnknownOutcome(t *testing.T) {
	outages(t, one, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		for c[0].budget.spend() {
		}
		copies := 0
		f.nodes["a"].answer(func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			if copies++; copies%2 == 1 {
				return refuse(fault.New(fault.OutcomeUnknown, "leadership lost"))(ctx, m)
			}
			return refuse(fault.New(fault.Busy, "queue is full"))(ctx, m)
		})
		if d, took, err := decide(t, c[0], planned("closed")); err != nil || d.FailureMode != ModeClosed || took >= 80*time.Millisecond {
			t.Errorf("%+v, %v after %v", d, err, took)
		}
		if d, _, err := decide(t, c[0], planned("patient")); !errors.Is(err, fault.OutcomeUnknown) {
			t.Errorf("%+v, %v", d, err)
		}
		if copies != 4 {
			t.Errorf("%d copies, want 4", copies)
		}
	})
}

// TestCallsRememberTheirRequestOnlyWhereModesHold: what only the cluster decides is
// not copied, and memory that is used again remembers nothing.
func TestCallsRememberTheirRequestOnlyWhereModesHold(t *testing.T) {
	requests := plans(3, "local", "closed")
	check := func(t *testing.T, c *Client, remember bool) {
		s, err := c.newCall(t.Context(), &requests[0])
		if err != nil {
			t.Fatal(err)
		}
		b := c.newBatch(t.Context(), requests, make([]Result, len(requests)), nil)
		for i, k := range []*call{&s.call, &b.calls[0], &b.calls[1], &b.calls[2]} {
			want := Request{}
			if remember {
				want = requests[max(0, i-1)]
			}
			if (k.began != 0) != remember || (k.due > k.began) != remember || !reflect.DeepEqual(k.request, want) {
				t.Errorf("began %d, due %d, %+v, want %+v", k.began, k.due, k.request, want)
			}
			k.judged = true
			k.attempt.Store(1)
			if c.fail(k, fault.New(fault.Internal, "so it is")); k.reset() {
				t.Error("a call that failed was used again")
			}
			k.state.Store(finished)
			k.err = nil
			if !k.reset() || k.began != 0 || k.due != 0 || k.judged || !reflect.DeepEqual(k.request, Request{}) {
				t.Errorf("used again as began %d, due %d, judged %v, %+v", k.began, k.due, k.judged, k.request)
			}
		}
	}
	outages(t, one, modes, 1, func(t *testing.T, _ *fakeCluster, c []*Client, _ *counting) { check(t, c[0], true) })
	bubble(t, one, func(t *testing.T, _ *fakeCluster, c *Client) { check(t, c, false) })
}

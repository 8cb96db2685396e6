package client

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

// One policy for each failure mode, picked by the plan of the request.
const modes = `
policies:
  - {id: local, match: {plan: local}, scope: [tenant], algorithm: fixed_window, amount: 100, window: 1m}
  - {id: closed, match: {plan: closed}, scope: [tenant], amount: 5, window: 1h, on_unavailable: {mode: closed, after: 80ms}}
  - {id: open, match: {plan: open}, scope: [tenant], amount: 5, window: 1h, on_unavailable: {mode: open, after: 20ms, for: 30s, then: closed}}
  - {id: patient, match: {plan: patient}, scope: [tenant], amount: 5, window: 1h, on_unavailable: {mode: closed, after: deadline}}
`

// counting is a meter provider that keeps the sums of its counters.
type counting struct {
	noop.MeterProvider
	sums sync.Map // name → *atomic.Int64
}

type meter struct {
	noop.Meter
	*counting
}

type sum struct {
	noop.Int64Counter
	n *atomic.Int64
}

func (c *counting) Meter(string, ...metric.MeterOption) metric.Meter { return meter{counting: c} }

func (c meter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	n, _ := c.sums.LoadOrStore(name, new(atomic.Int64))
	return sum{n: n.(*atomic.Int64)}, nil
}

func (s sum) Add(_ context.Context, n int64, _ ...metric.AddOption) { s.n.Add(n) }

func (c *counting) of(name string) int64 {
	n, ok := c.sums.Load(name)
	if !ok {
		return -1
	}
	return n.(*atomic.Int64).Load()
}

// outages runs a test against a fake cluster with policies, and clients that know them.
func outages(t *testing.T, addrs []string, file string, clients int, test func(t *testing.T, f *fakeCluster, c []*Client, m *counting)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, addrs...)
		f.tell(file)
		m := new(counting)
		c := make([]*Client, clients)
		for i := range c {
			c[i] = f.client(WithMeterProvider(m))
		}
		time.Sleep(11 * time.Second) // all have asked when all were there
		test(t, f, c, m)
		degraded, late := uint64(0), uint64(0)
		for _, c := range c {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			degraded, late = degraded+c.Stats().Degraded, late+c.Stats().Late
		}
		if int64(degraded) != m.of("ringlimit.client.degraded") || int64(late) != m.of("ringlimit.client.late_answers") {
			t.Errorf("the metrics say %d and %d, the counts %d and %d", m.of("ringlimit.client.degraded"), m.of("ringlimit.client.late_answers"), degraded, late)
		}
		f.stop()
	})
}

// tell gives the cluster policies.
func (f *fakeCluster) tell(file string) {
	set, err := policy.Parse("test.yaml", []byte(file))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, p := range set.Policies {
		p.Version = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.policies, f.asking = set.Encode(), map[string]map[uint64]bool{}
}

func (f *fakeCluster) each(do func(n *fakeNode)) {
	for _, n := range f.nodes {
		do(n)
	}
}

// clockStep is how much later than due the client's clock may find a call.
const clockStep = time.Millisecond

func planned(plan string) Request { return Request{Tenant: "acme", Plan: plan} }

// wantMode checks one answer and how long it took.
func wantMode(t *testing.T, c *Client, plan string, allowed bool, mode FailureMode, took time.Duration) {
	t.Helper()
	d, after, err := decide(t, c, planned(plan))
	if err != nil || !d.Degraded || d.Allowed != allowed || d.FailureMode != mode || d.PolicyID != plan || d.PolicyVersion != 1 {
		t.Errorf("%s: %+v, %v", plan, d, err)
	}
	if !d.Allowed && d.RetryAfter <= 0 {
		t.Errorf("%s: retry after %v", plan, d.RetryAfter)
	}
	if after < took || after > took+clockStep {
		t.Errorf("%s: after %v, want %v", plan, after, took)
	}
}

func TestAllNodesRefuseAndEachModeHoldsAtOnce(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.each((*fakeNode).kill)
		time.Sleep(time.Second)
		wantMode(t, c[0], "local", true, ModeLocal, 0)
		wantMode(t, c[0], "closed", false, ModeClosed, 0)
		wantMode(t, c[0], "open", true, ModeOpen, 0)
		wantMode(t, c[0], "patient", false, ModeClosed, 0) // no leader to wait for
		results, err := c[0].DecideBatch(t.Context(), []Request{planned("local"), planned("closed"), {Tenant: "acme", Cost: -1}, {Tenant: "acme", Plan: "other"}})
		if err != nil || !results[0].Allowed || results[1].FailureMode != ModeClosed || !errors.Is(results[2].Err, fault.InvalidArgument) {
			t.Errorf("batch: %+v, %v", results, err)
		}
		if r := results[3]; r.Err != nil || !r.Allowed || !r.Degraded || r.FailureMode != ModeNoPolicy || r.Reason != "no_policy" {
			t.Errorf("no policy: %+v", r)
		}
		if n := m.of("ringlimit.client.degraded"); n != 7 {
			t.Errorf("%d degraded answers counted, want 7", n)
		}
	})
}

// TestCallsUnderWayAreDecidedWhenNodesDie: they do not wait for their after.
func TestCallsUnderWayAreDecidedWhenNodesDie(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.each(func(n *fakeNode) { n.answer(silent) })
		time.AfterFunc(5*time.Millisecond, func() { f.each((*fakeNode).kill) })
		d, took, err := decide(t, c[0], planned("patient"))
		if err != nil || d.FailureMode != ModeClosed || took < 5*time.Millisecond || took > 80*time.Millisecond {
			t.Errorf("%+v, %v after %v", d, err, took)
		}
	})
}

func TestSilentNodesAreWaitedForAsLongAsThePolicySays(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		for range 3 { // also when the client has given up their streams
			f.each((*fakeNode).hang)
			wantMode(t, c[0], "local", true, ModeLocal, 50*time.Millisecond)
			wantMode(t, c[0], "closed", false, ModeClosed, 80*time.Millisecond)
			wantMode(t, c[0], "open", true, ModeOpen, 20*time.Millisecond)
			wantMode(t, c[0], "patient", false, ModeClosed, 2*time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Millisecond)
			d, err := c[0].Decide(ctx, planned("closed")) // it can use no later answer
			if cancel(); err != nil || d.FailureMode != ModeClosed {
				t.Errorf("at its own deadline: %+v, %v", d, err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			if d, err := c[0].Decide(ctx, planned("closed")); !errors.Is(err, context.Canceled) {
				t.Errorf("given up by its caller: %+v, %v", d, err)
			}
		}
	})
}

// TestOneLeaderKilled: nobody with after: deadline degrades; with 50 ms only calls
// during the gap do.
func TestOneLeaderKilled(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		var gap atomic.Bool // from the kill to the new leader, and a moment for the news
		var degraded, asked atomic.Int64
		electing := refuse(fault.New(fault.NoLeader, "electing"))
		f.nodes["b"].answer(electing)
		f.nodes["c"].answer(electing)
		var callers sync.WaitGroup
		end := time.Now().Add(2 * time.Second)
		for i := range 40 {
			plan := []string{"patient", "local"}[i%2]
			callers.Go(func() {
				for time.Now().Before(end) {
					began := gap.Load()
					d, took, err := decide(t, c[0], planned(plan))
					asked.Add(1)
					switch {
					case err != nil:
						t.Errorf("%s: %v", plan, err)
					case d.Degraded && plan == "patient":
						t.Errorf("patient: degraded after %v", took)
					case d.Degraded:
						degraded.Add(1)
						if !began && !gap.Load() || took < 50*time.Millisecond || took > 50*time.Millisecond+clockStep {
							t.Errorf("degraded after %v, gap %v %v", took, began, gap.Load())
						}
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		gap.Store(true)
		f.nodes["a"].answer(silent)
		f.nodes["a"].kill()
		time.Sleep(300 * time.Millisecond)
		f.nodes["b"].answer(allowAll)
		f.lead("b", 2)
		time.Sleep(20 * time.Millisecond)
		gap.Store(false)
		callers.Wait()
		if degraded.Load() < 20 || degraded.Load() > 20*6 {
			t.Errorf("%d of %d answers degraded", degraded.Load(), asked.Load())
		}
		if uint64(degraded.Load()) != c[0].Stats().Degraded {
			t.Errorf("%d degraded answers, %d counted", degraded.Load(), c[0].Stats().Degraded)
		}
	})
}

func TestFourClientsAdmitOneLimit(t *testing.T) {
	outages(t, three, modes, 4, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.each((*fakeNode).kill)
		time.Sleep(time.Second)
		admitted, answers := make([]int, len(c)), 0
		for range 100 { // 50 seconds: less than a window
			for i := range c {
				d, _, err := decide(t, c[i], planned("local"))
				if err != nil || d.FailureMode != ModeLocal || d.Limit != 25 {
					t.Fatalf("%+v, %v", d, err)
				}
				if answers++; d.Allowed {
					admitted[i]++
				}
			}
			time.Sleep(500 * time.Millisecond)
		}
		for i, n := range admitted {
			if n != 25 {
				t.Errorf("client %d admitted %d of 100, want 25", i, n)
			}
		}
		if n := m.of("ringlimit.client.degraded"); n != int64(answers) {
			t.Errorf("%d degraded answers, the metric says %d", answers, n)
		}
	})
}

func TestOpenEndsWhenItsTimeEnds(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.each((*fakeNode).kill)
		began := time.Now()
		for time.Since(began) < time.Minute {
			lasted := time.Since(began)
			d, _, err := decide(t, c[0], planned("open"))
			unsure := lasted > 29900*time.Millisecond && lasted < 30100*time.Millisecond
			if err != nil || !unsure && d.Allowed != (lasted < 30*time.Second) {
				t.Fatalf("after %v: %+v, %v", lasted, d, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		f.each((*fakeNode).start)
		time.Sleep(time.Second)
		if d, _, err := decide(t, c[0], planned("open")); err != nil || d.Degraded {
			t.Fatalf("back again: %+v, %v", d, err)
		}
		time.Sleep(20 * time.Second)
		f.each((*fakeNode).kill)
		time.Sleep(time.Second)
		wantMode(t, c[0], "open", true, ModeOpen, 0) // another outage
	})
}

// TestBackWithinASecond: whatever happened, and for however long.
func TestBackWithinASecond(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		for _, away := range []time.Duration{100 * time.Millisecond, 3 * time.Second, 10 * time.Minute} {
			f.each((*fakeNode).kill)
			time.Sleep(away)
			wantMode(t, c[0], "local", true, ModeLocal, 0)
			f.each((*fakeNode).start)
			began := time.Now()
			for {
				d, _, err := decide(t, c[0], planned("closed"))
				if err != nil {
					t.Fatal(err)
				}
				if !d.Degraded {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("away for %v: back after %v", away, took)
			}
		}
		f.each((*fakeNode).hang)
		time.Sleep(5 * time.Second)
		wantMode(t, c[0], "closed", false, ModeClosed, 80*time.Millisecond)
		f.each((*fakeNode).resume)
		began := time.Now()
		for d, _, err := decide(t, c[0], planned("closed")); d.Degraded; d, _, err = decide(t, c[0], planned("closed")) {
			if err != nil || time.Since(began) > time.Second {
				t.Fatalf("still %+v, %v after %v", d, err, time.Since(began))
			}
		}
	})
}

// TestLateAnswersAreCounted: what the cluster charged after all is not lost silently.
func TestLateAnswersAreCounted(t *testing.T) {
	outages(t, one, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.nodes["a"].answer(func(ctx context.Context, r *pb.StreamRequest) []*pb.Result {
			time.Sleep(200 * time.Millisecond)
			return each(r, func(q *pb.DecideRequest) *pb.Result {
				return &pb.Result{Decision: &pb.Decision{Allowed: q.Subject.Plan == "local", PolicyId: q.Subject.Plan}}
			})
		})
		wantMode(t, c[0], "local", true, ModeLocal, 50*time.Millisecond)
		wantMode(t, c[0], "closed", false, ModeClosed, 80*time.Millisecond)
		if s := c[0].Stats(); s.Late != 0 || s.Degraded != 2 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Second)
		if s := c[0].Stats(); s.Late != 2 || s.LateAllowed != 1 {
			t.Errorf("%+v", s)
		}
		if n := m.of("ringlimit.client.late_answers"); n != 2 {
			t.Errorf("the metric says %d", n)
		}
	})
}

// TestRoomAndOverload: a node that has no room leaves local to the client, and a
// cluster that is overloaded is one that does not answer; exact policies get the error.
func TestRoomAndOverload(t *testing.T) {
	outages(t, one, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.nodes["a"].answer(refuse(&fault.Error{Kind: fault.StoreFull, Policy: "local", Mode: "local"}))
		wantMode(t, c[0], "local", true, ModeLocal, 0)
		f.nodes["a"].answer(func(_ context.Context, r *pb.StreamRequest) []*pb.Result {
			return each(r, func(q *pb.DecideRequest) *pb.Result {
				return &pb.Result{Decision: &pb.Decision{Degraded: true, PolicyId: q.Subject.Plan, PolicyVersion: 1, RetryAfterNs: 1}}
			})
		})
		wantMode(t, c[0], "closed", false, ModeClosed, 0) // the node has decided
		f.nodes["a"].answer(refuse(fault.New(fault.Busy, "queue is full")))
		for range 100 {
			d, _, err := decide(t, c[0], planned("open"))
			if err != nil || d.FailureMode != ModeOpen {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		if _, _, err := decide(t, c[0], planned("patient")); !errors.Is(err, fault.Busy) {
			t.Errorf("patient: %v", err)
		}
		if n := m.of("ringlimit.client.degraded"); n != 102 {
			t.Errorf("%d counted, want 102", n)
		}
	})
}

// TestClosedClientDecidesNothing, also when it knew what to do without the cluster.
func TestClosedClientDecidesNothing(t *testing.T) {
	outages(t, three, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.each((*fakeNode).kill)
		time.Sleep(time.Second)
		wantMode(t, c[0], "closed", false, ModeClosed, 0)
		c[0].Close()
		if d, _, err := decide(t, c[0], planned("closed")); !errors.Is(err, fault.Unavailable) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// TestForgottenCallsAreDecided: after a loss of state the cluster cannot say what it
// did with a call; an id of the caller's own is another matter.
func TestForgottenCallsAreDecided(t *testing.T) {
	outages(t, one, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.nodes["a"].answer(refuse(fault.New(fault.TooOld, "the state is new")))
		wantMode(t, c[0], "closed", false, ModeClosed, 0)
		own := planned("closed")
		own.RequestID = "mine"
		if d, _, err := decide(t, c[0], own); !errors.Is(err, fault.TooOld) {
			t.Errorf("%+v, %v", d, err)
		}
		copies := 0
		f.nodes["a"].answer(func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			if copies++; copies%2 == 1 { // it may have been charged, and nobody knows any more
				return refuse(fault.New(fault.OutcomeUnknown, "leadership lost"))(ctx, m)
			}
			return refuse(fault.New(fault.TooOld, "the state is new"))(ctx, m)
		})
		if d, _, err := decide(t, c[0], planned("patient")); err != nil || d.FailureMode != ModeClosed || d.Allowed {
			t.Errorf("%+v, %v", d, err)
		}
		if d, _, err := decide(t, c[0], own); !errors.Is(err, fault.OutcomeUnknown) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

func TestNeverDegradeLeavesErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, one...)
		f.tell(modes)
		c := f.client(NeverDegrade())
		time.Sleep(10 * time.Second)
		f.nodes["a"].kill()
		if d, took, err := decide(t, c, planned("local")); !errors.Is(err, fault.Deadline) || took.Round(2*time.Millisecond) != 2*time.Second {
			t.Errorf("%+v, %v after %v", d, err, took)
		}
		if len(f.asking) != 0 {
			t.Error("it counts as a client that takes a share")
		}
		c.Close()
		f.stop()
	})
}

// TestLimitsOfSeveralPolicies: each has its own mode, and all must pass.
func TestLimitsOfSeveralPolicies(t *testing.T) {
	const file = `
policies:
  - {id: a-open, scope: [tenant], amount: 5, window: 1h, on_unavailable: {mode: open, for: 1h}}
  - {id: b-local, scope: [tenant], amount: 3, window: 1h}
  - {id: c-closed, match: {plan: closed}, scope: [tenant], amount: 3, window: 1h, on_unavailable: {mode: closed}}
`
	outages(t, one, file, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.nodes["a"].kill()
		time.Sleep(time.Second)
		for i := range 5 {
			d, _, err := decide(t, c[0], planned("closed"))
			if err != nil || d.Allowed || d.PolicyID != "c-closed" || d.FailureMode != ModeClosed || len(d.Limits) != 3 {
				t.Errorf("%+v, %v", d, err)
			}
			d, _, err = decide(t, c[0], planned(""))
			if err != nil || d.Allowed != (i < 3) || d.PolicyID != "b-local" || d.FailureMode != ModeLocal || len(d.Limits) != 2 || !d.Limits[0].Allowed {
				t.Errorf("take %d: %+v, %v", i, d, err)
			}
		}
	})
}

// TestManyCallersThroughAnOutage: however many calls an outage meets, each is decided once and
// none is lost.
func TestManyCallersThroughAnOutage(t *testing.T) {
	outages(t, three, modes, 2, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		var degraded atomic.Int64
		var callers sync.WaitGroup
		end := time.Now().Add(6 * time.Second)
		for i := range 100 {
			callers.Go(func() {
				for time.Now().Before(end) {
					d, took, err := decide(t, c[i%2], planned([]string{"local", "closed", "open"}[i%3]))
					if err != nil || took > 90*time.Millisecond {
						t.Errorf("%+v, %v after %v", d, err, took)
					}
					if d.Degraded {
						degraded.Add(1)
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
		if n := m.of("ringlimit.client.degraded"); n != degraded.Load() || n < 1000 {
			t.Errorf("%d degraded answers, the metric says %d", degraded.Load(), n)
		}
	})
}

// TestNoRoomIsNotOpenForEver: a node says that there is no room when its time for open is
// over, and then what follows counts.
func TestNoRoomIsNotOpenForEver(t *testing.T) {
	const file = `
policies:
  - {id: open, match: {plan: open}, scope: [tenant], algorithm: fixed_window, amount: 2, window: 1h, on_unavailable: {mode: open, for: 30s}}
`
	outages(t, one, file, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		full := &fault.Error{Kind: fault.StoreFull, Message: "no room for another bucket", Mode: string(ModeLocal)}
		f.nodes["a"].answer(refuse(full))
		for i := range 3 {
			d, _, err := decide(t, c[0], planned("open"))
			if err != nil || d.FailureMode != ModeLocal || d.Allowed != (i < 2) {
				t.Errorf("take %d: %+v, %v", i, d, err)
			}
		}
	})
}

// TestSlowCallsAreNoOutage: a cluster that answers others meanwhile is in reach, and a
// caller who waits for less than its policies do has no say.
func TestSlowCallsAreNoOutage(t *testing.T) {
	outages(t, one, modes, 1, func(t *testing.T, f *fakeCluster, c []*Client, m *counting) {
		f.nodes["a"].answer(func(ctx context.Context, q *pb.StreamRequest) []*pb.Result {
			if q.Requests[0].Subject.Plan == "open" {
				time.Sleep(time.Second)
			}
			return allowAll(ctx, q)
		})
		for range 120 { // two minutes
			go decide(t, c[0], planned("local"))
			time.Sleep(time.Millisecond)
			var others sync.WaitGroup
			others.Go(func() { time.Sleep(5 * time.Millisecond); decide(t, c[0], planned("local")) })
			d, _, err := decide(t, c[0], planned("open"))
			if others.Wait(); err != nil || !d.Allowed {
				t.Fatalf("%+v, %v", d, err)
			}
			time.Sleep(time.Second)
		}
	})
}

package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// decide calls Decide and returns how long it took.
func decide(t *testing.T, c *Client, r Request) (Decision, time.Duration, error) {
	began := time.Now()
	d, err := c.Decide(t.Context(), r)
	return d, time.Since(began), err
}

// sameRequest fails unless all copies carry the id of the first and rising attempts.
func sameRequest(t *testing.T, copies []*pb.DecideRequest) {
	t.Helper()
	for i := 1; i < len(copies); i++ {
		first, next := copies[i-1].Sent, copies[i].Sent
		if next.Sequence != first.Sequence || next.Attempt <= first.Attempt || next.AgeNs < first.AgeNs || next.Epoch != first.Epoch {
			t.Errorf("copy %d is %v after %v", i, next, first)
		}
	}
}

func TestRetryKeepsTheID(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		var asked atomic.Int32
		f.nodes["a"].answer(func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			if asked.Add(1) < 4 {
				return refuse(fault.New(fault.OutcomeUnknown, "leadership lost"))(ctx, m)
			}
			return allowAll(ctx, m)
		})
		d, took, err := decide(t, c, acme)
		if err != nil || !d.Allowed || took > 200*time.Millisecond {
			t.Fatalf("got %+v, %v after %v", d, err, took)
		}
		copies := f.nodes["a"].requests()
		if len(copies) != 4 || copies[3].Sent.AgeNs == 0 {
			t.Errorf("copies: %v", copies)
		}
		sameRequest(t, copies)
		for _, m := range f.nodes["a"].got() {
			if m.Session != c.session || m.Acked != 0 {
				t.Errorf("message %v", m)
			}
		}
	})
}

func TestRedirectIsFollowedAtOnce(t *testing.T) {
	bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
			return each(m, func(r *pb.DecideRequest) *pb.Result {
				group := uint32(0) // whichever the client thinks: hint both ways
				if r.Subject.Tenant == "other" {
					group = 1
				}
				return failure(fault.Leader(&pb.LeaderHint{Group: group, Epoch: 1, Node: "b", Grpc: "b"}))
			})
		})
		for i := range 2 {
			if _, took, err := decide(t, c, acme); err != nil || took != 0 {
				t.Fatalf("call %d: %v after %v", i, err, took)
			}
		}
		sameRequest(t, append(f.nodes["a"].requests()[:1], f.nodes["b"].requests()[:1]...))
	})
}

func TestRedirectsThatGoInCirclesArePaced(t *testing.T) {
	bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
		hint := func(addr string) func(context.Context, *pb.StreamRequest) []*pb.Result {
			return func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
				return each(m, func(*pb.DecideRequest) *pb.Result {
					return failure(fault.Leader(&pb.LeaderHint{Group: 0, Epoch: 1, Node: addr, Grpc: addr}))
				})
			}
		}
		f.nodes["a"].answer(hint("b"))
		f.nodes["b"].answer(hint("a"))
		if _, took, err := decide(t, c, acme); !errors.Is(err, fault.Deadline) || took.Round(2*time.Millisecond) != 2*time.Second {
			t.Errorf("got %v after %v", err, took)
		}
		copies := len(f.nodes["a"].requests()) + len(f.nodes["b"].requests())
		if copies < 20 || copies > 220 {
			t.Errorf("%d copies in 2 s", copies)
		}
	})
}

func TestLeaderKilledMidFlight(t *testing.T) {
	bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(silent)
		electing := refuse(fault.New(fault.NoLeader, "electing"))
		f.nodes["b"].answer(electing)
		f.nodes["c"].answer(electing)
		var callers sync.WaitGroup
		began := time.Now()
		for range 500 {
			callers.Go(func() {
				if d, err := c.Decide(t.Context(), acme); err != nil || !d.Allowed {
					t.Errorf("got %+v, %v", d, err)
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		f.nodes["a"].kill()
		time.Sleep(300 * time.Millisecond)
		probes := len(f.nodes["b"].requests()) + len(f.nodes["c"].requests())
		f.nodes["b"].answer(allowAll)
		f.lead("b", 2)
		callers.Wait()
		if took := time.Since(began); took > 330*time.Millisecond {
			t.Errorf("took %v", took)
		}
		// All in flight ask another node once; then one at a time, every 5 … 100 ms.
		if probes > 500+40 {
			t.Errorf("%d requests while there was no leader", probes)
		}
		seen := map[uint64]bool{}
		for _, r := range f.nodes["b"].requests() {
			seen[r.Sent.Sequence] = true
		}
		if len(seen) != 500 {
			t.Errorf("the new leader saw %d requests, want 500", len(seen))
		}
	})
}

func TestLeaderRestartsAtItsAddress(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(silent)
		time.AfterFunc(100*time.Millisecond, f.nodes["a"].kill)
		time.AfterFunc(500*time.Millisecond, func() {
			f.nodes["a"].answer(allowAll)
			f.nodes["a"].start()
		})
		if d, took, err := decide(t, c, acme); err != nil || !d.Allowed || took > 1600*time.Millisecond {
			t.Errorf("got %+v, %v after %v", d, err, took)
		}
		sameRequest(t, f.nodes["a"].requests())
	})
}

func TestSilentLeaderIsLeftForItsSuccessor(t *testing.T) {
	for _, mute := range []bool{false, true} {
		t.Run(fmt.Sprintf("mute=%v", mute), func(t *testing.T) {
			bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
				f.mute = mute // then the client learns of b by asking
				if mute {
					f.change(func(*pb.Routing) {})
					synctest.Wait()
				}
				f.nodes["a"].hang()
				time.AfterFunc(300*time.Millisecond, func() { f.lead("b", 2) })
				d, took, err := decide(t, c, acme)
				if err != nil || !d.Allowed || took < 300*time.Millisecond || took > 620*time.Millisecond {
					t.Errorf("got %+v, %v after %v", d, err, took)
				}
				sameRequest(t, append(f.nodes["a"].requests(), f.nodes["b"].requests()...))
				if _, took, err = decide(t, c, acme); err != nil || took != 0 {
					t.Errorf("the next call: %v after %v", err, took)
				}
				f.nodes["a"].resume() // its late answer finds nobody
				synctest.Wait()
				if _, took, err = decide(t, c, acme); err != nil || took != 0 {
					t.Errorf("after it came back: %v after %v", err, took)
				}
			})
		})
	}
}

func TestHangingForwarderIsCut(t *testing.T) {
	bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
		homeless := Request{Route: "GET:/x"} // no tenant: any node
		if _, _, err := decide(t, c, homeless); err != nil {
			t.Fatal(err)
		}
		for _, n := range f.nodes {
			if len(n.requests()) > 0 {
				n.hang()
			}
		}
		if _, took, err := decide(t, c, homeless); err != nil || took > time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestNoLeaderThenLeader(t *testing.T) {
	for _, kind := range []*fault.Kind{fault.NoLeader, fault.NotReady, fault.Unavailable, fault.OutcomeUnknown} {
		bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
			f.nodes["a"].answer(refuse(fault.New(kind, "wait")))
			time.AfterFunc(time.Second, func() { f.nodes["a"].answer(allowAll) })
			var callers sync.WaitGroup
			for range 300 {
				callers.Go(func() {
					if d, took, err := decide(t, c, acme); err != nil || !d.Allowed || took > 1150*time.Millisecond {
						t.Errorf("%v: got %+v, %v after %v", kind, d, err, took)
					}
				})
			}
			callers.Wait()
			if copies := len(f.nodes["a"].requests()); copies > 300+300+60 {
				t.Errorf("%v: %d copies of 300 takes in a second without leader", kind, copies)
			}
		})
	}
}

func TestNotHeldHoldsUpNobodyElse(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
			return each(m, func(r *pb.DecideRequest) *pb.Result {
				if r.Subject.Tenant == "moving" {
					return failure(fault.NotHeld)
				}
				return allowed()
			})
		})
		var moving sync.WaitGroup
		moving.Go(func() {
			if _, _, err := decide(t, c, Request{Tenant: "moving"}); !errors.Is(err, fault.Deadline) {
				t.Errorf("got %v", err)
			}
		})
		for range 100 {
			time.Sleep(3 * time.Millisecond)
			if _, took, err := decide(t, c, acme); err != nil || took != 0 {
				t.Fatalf("%v after %v", err, took)
			}
		}
		moving.Wait()
		if copies := len(f.nodes["a"].requests()) - 100; copies > 50 {
			t.Errorf("%d copies in 2 s", copies)
		}
	})
}

func TestServersDeadlineIsNotTheCallers(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(refuse(fault.New(fault.Deadline, "not proposed in time")))
		time.AfterFunc(50*time.Millisecond, func() { f.nodes["a"].answer(allowAll) })
		if _, took, err := decide(t, c, acme); err != nil || took > 200*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		sameRequest(t, f.nodes["a"].requests())
	})
}

func TestMovedSlotIsFollowed(t *testing.T) {
	bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(refuse(fault.New(fault.NotHeld, "moved")))
		time.AfterFunc(50*time.Millisecond, func() {
			f.change(func(r *pb.Routing) {
				r.Revision = 2
				r.Groups = append(r.Groups, &pb.GroupRoute{Group: 7, Epoch: 4, Term: 9, Grpc: "c"})
				for i := range r.SlotGroups {
					r.SlotGroups[i] = 7
				}
			})
		})
		if _, took, err := decide(t, c, acme); err != nil || took > 60*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		if len(f.nodes["c"].requests()) != 1 {
			t.Error("the slot's new group was not asked")
		}
	})
}

func TestBusyLeaderIsRetriedWithinTheBudget(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(refuse(fault.New(fault.Busy, "queue is full")))
		const calls = 5000
		var callers sync.WaitGroup
		for range calls {
			callers.Go(func() {
				if _, err := c.Decide(t.Context(), acme); !errors.Is(err, fault.Busy) {
					t.Errorf("got %v", err)
				}
			})
		}
		callers.Wait()
		extra := len(f.nodes["a"].requests()) - calls
		if extra < calls/20 || extra > calls/10+10 {
			t.Errorf("%d retries of %d calls, want at most a tenth", extra, calls)
		}
	})
}

func TestBusyIsCuredByWaiting(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(refuse(fault.New(fault.Busy, "queue is full")))
		time.AfterFunc(5*time.Millisecond, func() { f.nodes["a"].answer(allowAll) })
		if _, took, err := decide(t, c, acme); err != nil || took > 200*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestNoErrorHidesACharge: the first copy may have been charged, so that the second was
// refused does not mean that nothing was.
func TestNoErrorHidesACharge(t *testing.T) {
	for _, kind := range []*fault.Kind{fault.Busy, fault.TooOld, fault.StoreFull, fault.PolicyStale} {
		bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
			for c.budget.spend() { // nothing is left for retries
			}
			copies := 0
			f.nodes["a"].answer(func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
				if copies++; copies == 1 {
					return refuse(fault.New(fault.OutcomeUnknown, "leadership lost"))(ctx, m)
				}
				return refuse(fault.New(kind, "so it is"))(ctx, m)
			})
			if _, _, err := decide(t, c, acme); !errors.Is(err, fault.OutcomeUnknown) || copies != 2 {
				t.Errorf("%v after %d copies: %v", kind, copies, err)
			}
			if _, _, err := decide(t, c, acme); !errors.Is(err, kind) {
				t.Errorf("%v of a call that was refused at once: %v", kind, err)
			}
			f.nodes["a"].later.failures = []error{fault.New(fault.OutcomeUnknown, "leadership lost"), fault.New(kind, "so it is")}
			if _, _, err := c.Refund(t.Context(), paid, 0); kind != fault.PolicyStale && !errors.Is(err, fault.OutcomeUnknown) {
				t.Errorf("%v of a refund: %v", kind, err)
			}
		})
	}
}

func TestAcknowledgedIsBelowEveryOpenCall(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		release := make(chan struct{})
		f.nodes["a"].answer(func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			if m.Requests[0].Subject.Tenant == "slow" {
				<-release
			}
			return allowAll(ctx, m)
		})
		var slow sync.WaitGroup
		slow.Go(func() { _, _, _ = decide(t, c, Request{Tenant: "slow"}) }) // sequence 1
		synctest.Wait()
		for range 100 {
			if _, _, err := decide(t, c, acme); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range f.nodes["a"].got() {
			if m.Acked != 0 {
				t.Fatalf("acknowledged %d while 1 is open", m.Acked)
			}
		}
		close(release)
		slow.Wait()
		_, _, _ = decide(t, c, acme)
		all := f.nodes["a"].got()
		if last := all[len(all)-1]; last.Acked != 101 {
			t.Errorf("acknowledged %d, want 101", last.Acked)
		}
	})
}

func TestStoppingNodeIsLeft(t *testing.T) {
	bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(refuse(fault.New(fault.Unavailable, "stopping")))
		time.AfterFunc(20*time.Millisecond, func() { f.lead("c", 2) })
		if _, took, err := decide(t, c, acme); err != nil || took > 30*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
	})
}

package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// bubble runs a test on fake time against a fake cluster.
func bubble(t *testing.T, addrs []string, test func(t *testing.T, f *fakeCluster, c *Client)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, addrs...)
		c := f.client()
		synctest.Wait() // connected, routing learnt
		test(t, f, c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		f.stop()
		// The bubble fails the test if a goroutine is left.
	})
}

var (
	one   = []string{"a"}
	three = []string{"a", "b", "c"}
	acme  = Request{Tenant: "acme"}
)

func TestQuietCallersMessageGoesAtOnce(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		for i := range 3 {
			began := time.Now()
			d, err := c.Decide(t.Context(), acme)
			if err != nil || !d.Allowed || d.Remaining != 9 || d.PolicyID != "p" {
				t.Fatalf("got %+v, %v", d, err)
			}
			if took := time.Since(began); took != 0 {
				t.Errorf("took %v on a network without delay", took)
			}
			if n := len(f.nodes["a"].got()); n != i+1 {
				t.Errorf("%d messages after %d calls", n, i+1)
			}
		}
		for i, r := range f.nodes["a"].requests() {
			if r.Sent.Sequence != uint64(i+1) || r.Sent.Attempt != 1 || r.Sent.Epoch != 1 {
				t.Errorf("request %d: %v", i, r)
			}
		}
	})
}

func TestConcurrentCallsShareAMessage(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			time.Sleep(10 * time.Millisecond)
			return allowAll(ctx, m)
		})
		var callers sync.WaitGroup
		for range 2500 {
			callers.Go(func() {
				if _, err := c.Decide(t.Context(), acme); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		messages := f.nodes["a"].got()
		if len(messages) > 6 {
			t.Errorf("%d messages for 2500 calls", len(messages))
		}
		for _, m := range messages {
			if len(m.Requests) > 1000 {
				t.Errorf("%d requests in a message", len(m.Requests))
			}
		}
	})
}

func TestBatchIsAnsweredInOrder(t *testing.T) {
	bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
		f.change(func(r *pb.Routing) { r.Groups[1].Grpc, r.Groups[1].Term = "b", 2 })
		synctest.Wait()
		byTenant := func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
			return each(m, func(r *pb.DecideRequest) *pb.Result {
				if r.Subject.Tenant == "t7" {
					return failure(fault.Field("subject.tenant", "unlucky"))
				}
				return &pb.Result{Decision: &pb.Decision{Allowed: true, PolicyId: r.Subject.Tenant}}
			})
		}
		f.nodes["a"].answer(byTenant)
		f.nodes["b"].answer(byTenant)
		requests := make([]Request, 300)
		for i := range requests {
			requests[i].Tenant = fmt.Sprintf("t%d", i)
		}
		requests[9].Cost = -1
		results, err := c.DecideBatch(t.Context(), requests)
		if err != nil {
			t.Errorf("error %v although most were decided", err)
		}
		if _, err := c.DecideBatch(t.Context(), requests[9:10]); !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("error %v although none was decided", err)
		}
		for i, r := range results {
			if bad := i == 7 || i == 9; bad != (r.Err != nil) || !bad && r.PolicyID != requests[i].Tenant {
				t.Errorf("result %d: %+v", i, r)
			}
		}
		if text := results[9].Err.Error(); text != "requests[9].cost: must be 0 to 1000000000, is -1" {
			t.Error(text)
		}
		if len(f.nodes["a"].requests()) == 0 || len(f.nodes["b"].requests()) == 0 {
			t.Error("the batch did not go to both leaders")
		}
	})
}

func TestDeadlineIsBothKinds(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(silent)
		began := time.Now()
		_, err := c.Decide(t.Context(), acme) // no deadline: 2 s
		if took := time.Since(began).Round(2 * time.Millisecond); took != 2*time.Second {
			t.Errorf("gave up after %v", took)
		}
		if !errors.Is(err, fault.Deadline) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		began = time.Now()
		if _, err = c.Decide(ctx, acme); !errors.Is(err, fault.Deadline) || time.Since(began) != 30*time.Millisecond {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		if _, err = c.Decide(ctx, acme); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestDeadlineTellsTheCause(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(refuse(fault.New(fault.NoLeader, "group 0 is electing")))
		_, err := c.Decide(t.Context(), acme)
		if want := "context deadline exceeded: no leader: group 0 is electing"; err == nil || err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	})
}

// TestTheCauseIsOfNow: that a node was out of reach once explains nothing after it
// was found again, nor while another can be asked.
func TestTheCauseIsOfNow(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(t *testing.T, f *fakeCluster, c *Client) {
		const silence, unreached = "context deadline exceeded", "connection refused"
		check := func(when, want string, sent bool) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := c.Decide(ctx, acme) // ended by its context
			_, timed := c.Decide(t.Context(), acme)
			for _, err := range []error{err, timed} {
				if err == nil || strings.Contains(err.Error(), unreached) != (want == unreached) || strings.Contains(err.Error(), "never sent") == sent {
					t.Errorf("%s: %v", when, err)
				}
			}
		}
		f.nodes["a"].answer(silent)
		f.nodes["b"].answer(silent)
		check("both up", silence, true)
		f.nodes["b"].kill()
		time.Sleep(time.Minute) // b is tried over and over
		check("the other is down", silence, true)
		f.nodes["a"].kill()
		time.Sleep(time.Second)
		check("both down", unreached, false)
		f.nodes["a"].start()
		time.Sleep(10 * time.Second)
		check("up again", silence, true)
	})
}

func TestAllNamesEveryLimit(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		limits := []*pb.LimitDecision{{Allowed: true, PolicyId: "p", Remaining: 9}, {Allowed: true, PolicyId: "q"}}
		for want, d := range []*pb.Decision{
			{Allowed: true, Reason: "no_policy"},
			{Allowed: true, Remaining: 9, PolicyId: "p"},
			{Allowed: true, Remaining: 9, PolicyId: "p", Limits: limits},
		} {
			f.nodes["a"].answer(func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
				return each(m, func(*pb.DecideRequest) *pb.Result { return &pb.Result{Decision: d} })
			})
			got, err := c.Decide(t.Context(), acme)
			if err != nil {
				t.Fatal(err)
			}
			if all := got.All(); len(all) != want || want > 0 && (all[0].PolicyID != "p" || all[0].Remaining != 9) {
				t.Errorf("%d policies: %+v", want, all)
			}
			if want < 2 && got.Limits != nil {
				t.Errorf("%d policies: Limits %+v", want, got.Limits)
			}
		}
	})
}

func TestErrorsThatNoRetryCuresAreReturnedAtOnce(t *testing.T) {
	for _, kind := range []*fault.Kind{fault.InvalidArgument, fault.TooOld, fault.IDReused, fault.StoreFull, fault.Internal} {
		bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
			f.nodes["a"].answer(refuse(fault.New(kind, "so it is")))
			began := time.Now()
			if _, err := c.Decide(t.Context(), acme); !errors.Is(err, kind) || time.Since(began) != 0 {
				t.Errorf("%v: got %v after %v", kind, err, time.Since(began))
			}
			if n := len(f.nodes["a"].requests()); n != 1 {
				t.Errorf("%v: asked %d times", kind, n)
			}
		})
	}
}

func TestCloseEndsCalls(t *testing.T) {
	bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].answer(silent)
		var callers sync.WaitGroup
		var unknown, refused atomic.Int64
		for range 10 {
			callers.Go(func() {
				switch _, err := c.Decide(t.Context(), acme); {
				case errors.Is(err, fault.OutcomeUnknown):
					unknown.Add(1)
				case errors.Is(err, fault.Unavailable):
					refused.Add(1)
				default:
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		c.Close()
		callers.Wait()
		if took := time.Since(began); took != 0 {
			t.Errorf("Close took %v", took)
		}
		// Those that waited for the messages under way were never sent.
		if sent := len(f.nodes["a"].requests()); int(unknown.Load()) != sent || int(refused.Load()) != 10-sent || sent == 0 {
			t.Errorf("%d sent, %d of unknown outcome, %d refused", sent, unknown.Load(), refused.Load())
		}
		if _, err := c.Decide(t.Context(), acme); !errors.Is(err, fault.Unavailable) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestOwnIDAndLookCarryNoSequence(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		for _, r := range []Request{{Tenant: "acme", RequestID: "mine"}, {Tenant: "acme", Look: true, StaleOK: true}} {
			if _, err := c.Decide(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		got := f.nodes["a"].requests()
		if got[0].Sent != nil || got[0].RequestId != "mine" || got[0].Cost != nil {
			t.Errorf("own id: %v", got[0])
		}
		if got[1].Sent != nil || got[1].Cost == nil || *got[1].Cost != 0 || !got[1].StaleOk {
			t.Errorf("look: %v", got[1])
		}
	})
}

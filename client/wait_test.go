package client

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
)

// spend takes all tokens.
func spend(t *testing.T, c *Client) Decision {
	t.Helper()
	for {
		d, err := c.Decide(t.Context(), acme)
		if err != nil {
			t.Fatal(err)
		}
		if !d.Allowed {
			return d
		}
	}
}

// TestWaitIsAdmittedAtItsTime: alone, with the second ask, not before it was told and
// little later.
func TestWaitIsAdmittedAtItsTime(t *testing.T) {
	for _, limit := range limits {
		bucketBubble(t, limit, func(t *testing.T, c *Client, b *oneBucket, _ *fakeNode) {
			last := spend(t, c)
			before, _ := b.seen()
			began := time.Now()
			d, err := c.Wait(t.Context(), acme)
			took, most := time.Since(began)-d.Delay, last.RetryAfter+spreadOf(last.RetryAfter, 0)
			if err != nil || !d.Allowed || took < last.RetryAfter || took > most {
				t.Errorf("%s: after %v of %v to %v: %+v, %v", limit.Algorithm, took, last.RetryAfter, most, d, err)
			}
			if asked, _ := b.seen(); len(asked)-len(before) != 2 {
				t.Errorf("%s: asked %d times", limit.Algorithm, len(asked)-len(before))
			}
		})
	}
}

// TestManyThatWaitDoNotComeBackTogether: 1,000 of one bucket, denied in one instant. They are
// spread, none is early, they are admitted as fast as the limit allows, and ask little.
func TestManyThatWaitDoNotComeBackTogether(t *testing.T) {
	limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: 1, Window: int64(100 * time.Millisecond)}
	bucketBubble(t, limit, func(t *testing.T, c *Client, b *oneBucket, _ *fakeNode) {
		const callers, admissions = 1000, 25
		last := spend(t, c)
		before, _ := b.seen()
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				if _, err := c.Wait(ctx, acme); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				if _, passed := b.seen(); len(passed) > admissions {
					cancel()
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		asked, passed := b.seen()
		asked = asked[len(before):]
		atOnce, back := 0, 0
		spread := spreadOf(last.RetryAfter, 0)
		perSlice := map[time.Duration]int{}
		for _, at := range asked {
			switch since := at.Sub(began); {
			case since == 0:
				atOnce++
			case since < last.RetryAfter:
				t.Errorf("back after %v of %v", since, last.RetryAfter)
			case since <= last.RetryAfter+spread:
				back++
				perSlice[(since-last.RetryAfter)*20/spread]++
			}
		}
		if atOnce > callers || back < callers/2 {
			t.Errorf("%d asked at first, %d came back", atOnce, back)
		}
		for slice, n := range perSlice {
			if n > callers/10 { // a twentieth, if all are alike
				t.Errorf("%d of %d came back in slice %d of 20", n, callers, slice)
			}
		}
		ideal := time.Duration(len(passed)-1) * time.Duration(limit.Window)
		if len(passed) <= admissions || took > ideal*5/4 {
			t.Errorf("%d admitted in %v, the limit allows %v", len(passed)-1, took, ideal)
		}
		// Each asks some times while its spread doubles, and then once in four of the times it is told.
		if n, most := len(asked), callers*(doublings+1)+callers*int(took/(4*last.RetryAfter)); n > most {
			t.Errorf("asked %d times, want at most %d", n, most)
		}
		t.Logf("%d asks for %d admissions in %v (ideal %v)", len(asked), len(passed)-1, took, ideal)
	})
}

// TestWaitThatCannotEndInTimeEndsAtOnce, and says so; a deadline that is later than the
// wait, by however little, is met.
func TestWaitThatCannotEndInTimeEndsAtOnce(t *testing.T) {
	limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: 1, Window: int64(time.Second)}
	bucketBubble(t, limit, func(t *testing.T, c *Client, _ *oneBucket, _ *fakeNode) {
		spend(t, c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		d, err := c.Wait(ctx, acme)
		if !errors.Is(err, ErrWaitTooLong) || !errors.Is(err, context.DeadlineExceeded) || d.RetryAfter != time.Second || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second+2*time.Millisecond)
			if d, err := c.Wait(ctx, acme); err != nil || !d.Allowed {
				t.Fatal(err)
			}
			cancel()
		}
	})
}

// TestNoWaitForWhatNeverPasses.
func TestNoWaitForWhatNeverPasses(t *testing.T) {
	bucketBubble(t, limits[0], func(t *testing.T, c *Client, _ *oneBucket, n *fakeNode) {
		r := acme
		r.Cost = 6
		if d, err := c.Wait(t.Context(), r); !errors.Is(err, ErrNoWaitHelps) || d.Reason != "cost_exceeds_capacity" {
			t.Errorf("%+v, %v", d, err)
		}
		n.answer(func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
			return each(m, func(*pb.DecideRequest) *pb.Result {
				return &pb.Result{Decision: &pb.Decision{Reason: "denied_by_another_limit", PolicyId: "p"}}
			})
		})
		r = acme
		r.RequestID = "own"
		if _, err := c.Wait(t.Context(), r); !errors.Is(err, ErrNoWaitHelps) {
			t.Errorf("%v", err)
		}
		// Without an id the next ask may pass at once: it goes on, slower and slower.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		before := len(n.requests())
		if _, err := c.Wait(ctx, acme); !errors.Is(err, ErrWaitTooLong) {
			t.Errorf("%v", err)
		}
		if asked := len(n.requests()) - before; asked < 20 || asked > 220 {
			t.Errorf("asked %d times in 10 s", asked)
		}
	})
}

// TestTurnOfALeakyBucketIsSlept, and one that comes too late is given back where the
// request has an id, with its permits.
func TestTurnOfALeakyBucketIsSlept(t *testing.T) {
	limit := bucket.Limit{Algorithm: bucket.LeakyBucket, Amount: 1, Burst: 3, Window: int64(time.Second)}
	bucketBubble(t, limit, func(t *testing.T, c *Client, _ *oneBucket, n *fakeNode) {
		began := time.Now()
		for i := range 3 {
			if d, err := c.Wait(t.Context(), acme); err != nil || !d.Allowed {
				t.Fatal(err)
			}
			if took := time.Since(began); took != time.Duration(i)*time.Second {
				t.Errorf("turn %d after %v", i, took)
			}
		}
		n.answer(func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
			return each(m, func(*pb.DecideRequest) *pb.Result {
				return &pb.Result{Decision: &pb.Decision{Allowed: true, PolicyId: "p", DelayNs: int64(time.Minute), PermitId: "mine"}}
			})
		})
		for _, r := range []Request{acme, paid} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			began := time.Now()
			d, err := c.Wait(ctx, r)
			cancel()
			if !errors.Is(err, ErrWaitTooLong) || d.Delay != time.Minute || time.Since(began) != 0 {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := c.Wait(ctx, paid); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.later.refunds) != 2 || len(n.later.permits) != 3 || n.later.refunds[0].RequestId != paid.RequestID {
			t.Errorf("%d refunds, %d permits", len(n.later.refunds), len(n.later.permits))
		}
	})
}

// TestWaitOutlivesErrorsThatPass: of a busy cluster, and of one whose answer was lost where
// asking again cannot charge twice.
func TestWaitOutlivesErrorsThatPass(t *testing.T) {
	look, own := acme, acme
	look.Look, own.RequestID = true, "own"
	for _, x := range []struct {
		name string
		r    Request
		err  error
		ends bool
	}{
		{"busy", acme, fault.New(fault.Busy, "queue full"), false},
		{"full", acme, fault.New(fault.StoreFull, "no room"), false},
		{"not valid", acme, fault.New(fault.InvalidArgument, "no"), true},
		{"internal", acme, fault.New(fault.Internal, "bug"), true},
	} {
		bucketBubble(t, limits[0], func(t *testing.T, c *Client, b *oneBucket, n *fakeNode) {
			n.answer(b.refuseFirst(40, x.err))
			d, err := c.Wait(t.Context(), x.r)
			if ended := err != nil; ended != x.ends || d.Allowed == x.ends {
				t.Errorf("%s: %+v, %v", x.name, d, err)
			}
		})
	}
	for _, r := range []Request{acme, look, own} {
		bucketBubble(t, limits[0], func(t *testing.T, c *Client, _ *oneBucket, n *fakeNode) {
			n.hang()
			time.AfterFunc(10*time.Second, n.resume)
			d, err := c.Wait(t.Context(), r)
			if once := !r.Look && r.RequestID == ""; once != errors.Is(err, fault.Deadline) || once == d.Allowed {
				t.Errorf("%+v: %+v, %v", r, d, err)
			}
		})
	}
}

// TestWaitEndsWithItsContextAndItsClient.
func TestWaitEndsWithItsContextAndItsClient(t *testing.T) {
	bucketBubble(t, limits[0], func(t *testing.T, c *Client, _ *oneBucket, n *fakeNode) {
		n.answer(func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
			return each(m, func(*pb.DecideRequest) *pb.Result {
				return &pb.Result{Decision: &pb.Decision{Reason: "rate_limited", RetryAfterNs: math.MaxInt64}}
			})
		})
		why := errors.New("the job is not needed any more")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Hour, func() { cancel(why) })
		if _, err := c.Wait(ctx, acme); !errors.Is(err, why) || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		done := make(chan error)
		go func() {
			_, err := c.Wait(t.Context(), acme)
			done <- err
		}()
		synctest.Wait()
		c.Close()
		if err := <-done; !errors.Is(err, fault.Unavailable) {
			t.Errorf("%v", err)
		}
	})
}

package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
)

// landlord grants permits for a window of its clock, which is the bubble's, as a bucket
// does: a renewal of one that has ended is refused.
type landlord struct {
	window time.Duration
	fails  func() error // of renewals; nil: none

	mu       sync.Mutex
	ends     map[string]time.Time
	renewals int
	released []string
}

func (l *landlord) grant(id string) Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends == nil {
		l.ends = map[string]time.Time{}
	}
	l.ends[id] = time.Now().Add(l.window)
	return Answer{Allowed: true, PermitID: id, ResetAfter: l.window}
}

func (l *landlord) held(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.ends[id])
}

func (l *landlord) Renew(ctx context.Context, _ Request, id string) (time.Duration, bool, error) {
	if err := ctx.Err(); err != nil {
		return 0, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewals++
	if l.fails != nil {
		if err := l.fails(); err != nil {
			return 0, false, err
		}
	}
	if !time.Now().Before(l.ends[id]) {
		return 0, false, nil
	}
	l.ends[id] = time.Now().Add(l.window)
	return l.window, true, nil
}

func (l *landlord) Release(_ context.Context, _ Request, id string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = append(l.released, id)
	held := time.Now().Before(l.ends[id])
	delete(l.ends, id)
	return held, nil
}

func (l *landlord) renewed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.renewals
}

func (l *landlord) gave() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(slices.Values(l.released))
}

// TestHeldPermitNeverEndsWhileItIsHeld: nor is it renewed more often than it needs.
func TestHeldPermitNeverEndsWhileItIsHeld(t *testing.T) {
	for _, window := range []time.Duration{20 * time.Millisecond, time.Second, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			l := &landlord{window: window}
			asked := time.Now()
			d := Decision{Answer: l.grant("a")}
			quiet := l.grant("b")
			quiet.Shadow = true
			d.Limits = []Answer{d.Answer, {Allowed: true}, quiet}
			ctx, held := Hold(t.Context(), l, Request{}, &d, AskedAt(asked))
			for range 100 {
				time.Sleep(window / 10)
				synctest.Wait()
				if !l.held("a") || !l.held("b") || ctx.Err() != nil {
					t.Fatalf("%v: held %v %v, %v", window, l.held("a"), l.held("b"), ctx.Err())
				}
			}
			if l.renewed() > 2*20 {
				t.Errorf("%v: %d renewals of two permits in ten windows", window, l.renewed())
			}
			if err := held.Release(t.Context()); err != nil || held.Release(t.Context()) != nil {
				t.Error(err)
			}
			if got := l.gave(); !slices.Equal(got, []string{"a", "b"}) || ctx.Err() == nil || errors.Is(context.Cause(ctx), ErrPermitLost) {
				t.Errorf("given back %q, context %v", got, context.Cause(ctx))
			}
			select {
			case <-held.Lost():
				t.Error("what was released is lost")
			default:
			}
			n := l.renewed()
			if time.Sleep(10 * window); l.renewed() != n {
				t.Error("renewed after its release")
			}
		})
	}
}

// TestHolderNeverWorksWithoutItsPermit: whatever fails and however long, the holder is told
// before its permit can be somebody else's.
func TestHolderNeverWorksWithoutItsPermit(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			outage := rand.New(rand.NewPCG(seed, 8))
			l := &landlord{window: 3 * time.Second}
			l.fails = func() error {
				if outage.IntN(3) > 0 {
					return fault.Unavailable
				}
				return nil
			}
			asked := time.Now()
			d := Decision{Answer: l.grant("a")}
			time.Sleep(time.Duration(r.IntN(50)) * time.Millisecond) // the answer's way
			var told atomic.Int64
			ctx, held := Hold(t.Context(), l, Request{}, &d, AskedAt(asked), OnHoldError(func(err error) {
				if errors.Is(err, ErrPermitLost) {
					told.Add(1)
				}
			}))
			if seed%3 == 0 {
				time.AfterFunc(7*time.Second, func() { // it is taken away
					l.mu.Lock()
					defer l.mu.Unlock()
					clear(l.ends)
				})
			}
			for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
				synctest.Wait()
				if taken := seed%3 == 0 && time.Since(asked) > 7*time.Second; ctx.Err() == nil && !l.held("a") && !taken {
					t.Fatalf("seed %d: at work without a permit after %v", seed, time.Since(asked))
				}
			}
			if seed%3 == 0 {
				if got := time.Since(asked); got > 11*time.Second {
					t.Errorf("seed %d: what was taken away was told after %v", seed, got)
				}
			}
			if lost := errors.Is(context.Cause(ctx), ErrPermitLost); lost != (told.Load() == 1) || lost != isClosed(held.Lost()) {
				t.Errorf("seed %d: lost %v, told %d times", seed, lost, told.Load())
			}
			_ = held.Release(t.Context())
		})
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestContextBoundsTheHolding: its end ends the renewals and gives nothing back, unless
// they go on until the release.
func TestContextBoundsTheHolding(t *testing.T) {
	for _, until := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := &landlord{window: time.Second}
			parent, cancel := context.WithCancel(t.Context())
			d := Decision{Answer: l.grant("a")}
			opts := []HoldOption{AskedAt(time.Now())}
			if until {
				opts = append(opts, UntilReleased())
			}
			ctx, held := Hold(parent, l, Request{}, &d, opts...)
			cancel()
			if <-ctx.Done(); errors.Is(context.Cause(ctx), ErrPermitLost) {
				t.Error("told lost")
			}
			time.Sleep(10 * time.Second)
			if l.held("a") != until || l.gave() != nil {
				t.Errorf("until released %v: held %v, given back %q", until, l.held("a"), l.gave())
			}
			if err := held.Release(parent); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if synctest.Wait(); len(l.gave()) != 1 {
				t.Errorf("given back %q", l.gave())
			}
		})
	}
}

// TestTimeThatIsNotKnownIsAskedFor: of an id that may be answered by an old decision, and
// where nobody says when it was asked.
func TestTimeThatIsNotKnownIsAskedFor(t *testing.T) {
	for _, r := range []Request{{}, {RequestID: "own"}} {
		synctest.Test(t, func(t *testing.T) {
			l := &landlord{window: time.Minute}
			d := Decision{Answer: l.grant("a")}
			var opts []HoldOption
			if r.RequestID != "" {
				opts = []HoldOption{AskedAt(time.Now())}
			}
			_, held := Hold(t.Context(), l, r, &d, opts...)
			time.Sleep(renewUnknown)
			if synctest.Wait(); l.renewed() != 1 {
				t.Errorf("%d renewals", l.renewed())
			}
			time.Sleep(time.Minute)
			if synctest.Wait(); l.renewed() != 3 || !l.held("a") {
				t.Errorf("%d renewals", l.renewed())
			}
			_ = held.Release(t.Context())
		})
	}
}

func TestNothingToHold(t *testing.T) {
	ctx, held := Hold(t.Context(), &landlord{}, Request{}, &Decision{Answer: Answer{Allowed: true}})
	if ctx != t.Context() || held != nil || held.Lost() != nil || held.Release(ctx) != nil {
		t.Error("it holds something")
	}
}

// TestReleaseGoesOnBehindItsContext: who waits is told that it was not done yet.
func TestReleaseGoesOnBehindItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLandlord{landlord{window: time.Minute}}
		d := Decision{Answer: l.grant("a")}
		_, held := Hold(t.Context(), l, Request{}, &d, AskedAt(time.Now()))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := held.Release(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 100*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		time.Sleep(2 * time.Second)
		if synctest.Wait(); len(l.gave()) != 1 || held.Release(t.Context()) != nil {
			t.Errorf("given back %q", l.gave())
		}
	})
}

type slowLandlord struct{ landlord }

func (l *slowLandlord) Release(ctx context.Context, r Request, id string) (bool, error) {
	time.Sleep(time.Second)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	return l.landlord.Release(ctx, r, id)
}

// TestCloseEndsWhatIsHeld: nobody renews it any more, so its holder must know; and nothing
// of the holding runs when Close has returned.
func TestCloseEndsWhatIsHeld(t *testing.T) {
	bubble(t, []string{"a"}, func(t *testing.T, _ *fakeCluster, c *Client) {
		d := Decision{Answer: Answer{Allowed: true, PermitID: "mine", ResetAfter: time.Minute}}
		ctx, held := Hold(t.Context(), c, Request{Tenant: "t"}, &d, AskedAt(time.Now()))
		time.Sleep(5 * time.Minute)
		if ctx.Err() != nil {
			t.Fatal(context.Cause(ctx))
		}
		c.Close()
		if !errors.Is(context.Cause(ctx), ErrPermitLost) || !errors.Is(context.Cause(ctx), fault.Unavailable) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		if err := held.Release(t.Context()); !errors.Is(err, fault.Unavailable) {
			t.Errorf("release %v", err)
		}
		ctx, held = Hold(t.Context(), c, Request{Tenant: "t"}, &d)
		if !errors.Is(context.Cause(ctx), ErrPermitLost) || !isClosed(held.Lost()) {
			t.Errorf("held by a closed client: %v", context.Cause(ctx))
		}
		_ = held.Release(t.Context())
	})
}

// TestHoldOverTheWire: renewals and the release arrive at a node, with the request, and a
// node that does not know the permit ends the holding.
func TestHoldOverTheWire(t *testing.T) {
	bubble(t, []string{"a"}, func(t *testing.T, f *fakeCluster, c *Client) {
		d := Decision{Answer: Answer{Allowed: true, PermitID: "mine", ResetAfter: time.Minute}}
		_, held := Hold(t.Context(), c, Request{Tenant: "t"}, &d, AskedAt(time.Now()))
		other := Decision{Answer: Answer{Allowed: true, PermitID: "gone", ResetAfter: time.Minute}}
		ctx, lost := Hold(t.Context(), c, Request{Tenant: "t"}, &other, AskedAt(time.Now()))
		time.Sleep(75 * time.Second)
		if isClosed(held.Lost()) || !isClosed(lost.Lost()) || !errors.Is(context.Cause(ctx), ErrPermitLost) {
			t.Errorf("lost %v and %v, %v", isClosed(held.Lost()), isClosed(lost.Lost()), context.Cause(ctx))
		}
		if err := errors.Join(held.Release(t.Context()), lost.Release(t.Context())); err != nil {
			t.Error(err)
		}
		var ids []string
		for _, r := range f.nodes["a"].later.permits {
			if ids = append(ids, r.PermitId); r.Subject.Tenant != "t" {
				t.Errorf("asked for %q", r.Subject.Tenant)
			}
		}
		if slices.Sort(ids); !slices.Equal(ids, []string{"gone", "gone", "mine", "mine", "mine"}) {
			t.Errorf("asked about %q", ids)
		}
	})
}

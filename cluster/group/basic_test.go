package group

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

func TestTakesAreDecidedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := oneOff(3)
		for i, want := range []bucket.Code{bucket.Admitted, bucket.Admitted, bucket.Admitted, bucket.Denied} {
			got, _, err := take(l, ask(5, limit, 1, 1, uint64(i+1)), time.Second)
			if err != nil || got != want {
				t.Fatalf("take %d: %v, %v, want %v", i, got, err, want)
			}
		}
		got, _, err := take(l, ask(5, limit, 1, 1, 2), time.Second)
		if err != nil || got != bucket.Repeated {
			t.Errorf("a copy of take 2: %v, %v, want repeated", got, err)
		}
		for _, o := range w.others(l) {
			if _, _, err := take(o, ask(5, limit, 1, 1, 9), time.Second); !errors.Is(err, fault.NotLeader) {
				t.Errorf("%s answered %v, want not leader", o.id, err)
			}
		}
	})
}

func TestSlotNotHeldIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(1, nil)
		l := w.leader()
		if got, _, err := take(l, ask(5, oneOff(3), 1, 1, 1), time.Second); err != nil || got != bucket.NotHeld {
			t.Errorf("got %v, %v, want not held", got, err)
		}
	})
}

func TestTakesShareACommit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		synctest.Wait()
		before := l.r.metrics.Entries.Load()
		var wg sync.WaitGroup
		const n = 500
		for i := range n {
			wg.Go(func() {
				if got, _, err := take(l, ask(uint64(i), oneOff(3), 1, 1, uint64(i+1)), time.Second); err != nil || got != bucket.Admitted {
					t.Errorf("take %d: %v, %v", i, got, err)
				}
			})
		}
		wg.Wait()
		if entries := l.r.metrics.Entries.Load() - before; entries > 5 {
			t.Errorf("%d takes at once needed %d entries", n, entries)
		}
	})
}

func TestQueueFullIsBusy(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		w.net.isolate(l.id, true) // nothing commits for half a second
		var wg sync.WaitGroup
		var busy, unknown, other atomic.Int64
		per := bucket.MaxEntryRequests / 4
		for i := range 12 {
			wg.Go(func() {
				reqs := make([]Request, per)
				for j := range reqs {
					reqs[j] = ask(uint64(i), oneOff(3), 1, 0, 0)
				}
				var out Outcome
				err := l.r.Take(context.Background(), reqs, &out)
				switch {
				case errors.Is(err, fault.Busy):
					busy.Add(1)
				case errors.Is(err, fault.OutcomeUnknown), errors.Is(err, fault.NoLeader), errors.Is(err, fault.NotLeader):
					unknown.Add(1)
				default:
					other.Add(1)
					t.Errorf("call %d: %v", i, err)
				}
			})
		}
		synctest.Wait()
		if busy.Load() < 3 {
			t.Errorf("%d calls were refused at once, want at least 3", busy.Load())
		}
		wg.Wait()
	})
}

func TestCallLargerThanAnEntryIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(1, nil)
		l := w.holdAll()
		reqs := make([]Request, bucket.MaxEntryRequests+1)
		for j := range reqs {
			reqs[j] = ask(1, oneOff(3), 1, 0, 0)
		}
		var out Outcome
		if err := l.r.Take(context.Background(), reqs, &out); !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("got %v", err)
		}
		if got, _, err := take(l, ask(1, oneOff(3), 3, 1, 1), time.Second); err != nil || got != bucket.Admitted {
			t.Errorf("afterwards: %v, %v", got, err)
		}
	})
}

func TestDeadlineBeforeProposingChargesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		w.net.hook(hooks{delay: func(_, _ string, cmd any) time.Duration { return 50 * time.Millisecond }})
		limit := oneOff(10)
		var wg sync.WaitGroup
		wg.Go(func() { take(l, ask(1, limit, 1, 1, 1), time.Second) })
		synctest.Wait() // the first take is in flight
		wg.Go(func() {
			if _, _, err := take(l, ask(1, limit, 1, 1, 2), 10*time.Millisecond); !errors.Is(err, fault.Deadline) {
				t.Errorf("short call: %v, want deadline", err)
			}
		})
		wg.Go(func() {
			if got, _, err := take(l, ask(1, limit, 1, 1, 3), time.Second); err != nil || got != bucket.Admitted {
				t.Errorf("call beside it: %v, %v", got, err)
			}
		})
		wg.Wait()
		if got := w.level(l, 1, limit); got != 8 {
			t.Errorf("%d tokens left, want 8", got)
		}
	})
}

func TestLeavingAnEntryInFlightIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		w.net.hook(hooks{delay: func(_, _ string, cmd any) time.Duration { return 50 * time.Millisecond }})
		if _, _, err := take(l, ask(1, oneOff(10), 1, 1, 1), 10*time.Millisecond); !errors.Is(err, fault.OutcomeUnknown) {
			t.Errorf("got %v, want outcome unknown", err)
		}
		time.Sleep(time.Second)
		if got, _, err := take(l, ask(1, oneOff(10), 1, 1, 1), time.Second); err != nil || got != bucket.Repeated {
			t.Errorf("its retry: %v, %v, want repeated", got, err)
		}
	})
}

func TestCapGivesNoNewBucket(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(1, func(c *Config) { c.MaxBuckets = 2 })
		l := w.holdAll()
		for i, want := range []bucket.Code{bucket.Admitted, bucket.Admitted, bucket.StoreFull} {
			if got, _, err := take(l, ask(uint64(i), oneOff(10), 1, 1, uint64(i+1)), time.Second); err != nil || got != want {
				t.Errorf("key %d: %v, %v, want %v", i, got, err, want)
			}
		}
		if got, _, err := take(l, ask(0, oneOff(10), 1, 1, 9), time.Second); err != nil || got != bucket.Admitted {
			t.Errorf("a key it has: %v, %v", got, err)
		}
	})
}

func TestTooBigCallChargesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := oneOff(1_000_000)
		reqs := make([]Request, bucket.MaxEntryRequests)
		for i := range reqs {
			reqs[i] = ask(1, limit, 1, 1, uint64(i+1))
			for len(reqs[i].Takes) < bucket.MaxRequestTakes {
				reqs[i].Takes = append(reqs[i].Takes, reqs[i].Takes[0])
			}
		}
		before := l.r.metrics.Takes.Load()
		var out Outcome
		for _, n := range []int{len(reqs), len(reqs) / 2} {
			if err := l.r.Take(context.Background(), reqs[:n], &out); !errors.Is(err, ErrTooBig) {
				t.Errorf("%d requests: %v", n, err)
			}
		}
		if got := l.r.metrics.Takes.Load(); got != before {
			t.Errorf("%d requests counted", got-before)
		}
		if left := w.level(l, 1, limit); left != 1_000_000 {
			t.Errorf("%d tokens left", left)
		}
	})
}

func TestOnlyTakesAskedOfALeaderAreCounted(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := oneOff(3)
		for i := range 6 { // admitted, then denied without a commit
			take(l, first(ask(1, limit, 1, 1, uint64(i+1))), time.Second)
			for _, o := range w.others(l) {
				take(o, first(ask(1, limit, 1, 2, uint64(i+1))), time.Second)
			}
		}
		if n := l.r.metrics.Takes.Load(); n != 6 {
			t.Errorf("%d takes of the leader, want 6", n)
		}
		for _, o := range w.others(l) {
			if n := o.r.metrics.Takes.Load(); n != 0 {
				t.Errorf("%d takes of a follower", n)
			}
		}
	})
}

// TestServingMeansTheViewIsOfThisTerm: a fresh leader that says it serves must not
// look as if it held nothing. Followers learn late that the slots are held.
func TestServingMeansTheViewIsOfThisTerm(t *testing.T) {
	for range 5 {
		bubble(t, func(t *testing.T, w *world) {
			w.start(3, nil)
			l := w.holdAll()
			w.kill(l)
			for begun := time.Now(); time.Since(begun) < 3*time.Second; time.Sleep(time.Millisecond) {
				for range 20 {
					for _, n := range w.all() {
						if s := n.r.Status(); s.Serving && s.HeldSlots != testSlots {
							t.Fatalf("serves in term %d and holds %d slots as of %d", s.Term, s.HeldSlots, s.Applied)
						}
					}
				}
			}
		})
	}
}

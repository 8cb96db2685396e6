package group

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

// replace adds a fresh replica for a dead one, in the order that never leaves
// the group without a live majority.
func (w *world) replace(dead string) *testNode {
	w.t.Helper()
	n := w.fresh(nil)
	w.member("remove "+dead, func(ctx context.Context, l *Replica) error { return l.Remove(ctx, dead) })
	w.join(n)
	return n
}

// join makes a fresh replica a voter.
func (w *world) join(n *testNode) {
	w.t.Helper()
	w.member("add "+n.id, func(ctx context.Context, l *Replica) error { return l.AddNonvoter(ctx, n.id) })
	w.member("promote "+n.id, func(ctx context.Context, l *Replica) error { return l.Promote(ctx, n.id) })
}

// member repeats one membership step until it is done.
func (w *world) member(what string, step func(context.Context, *Replica) error) {
	w.t.Helper()
	var err error
	w.until(30*time.Second, what, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		if err = step(ctx, w.leader().r); err != nil {
			time.Sleep(20 * time.Millisecond)
		}
		return err == nil
	})
}

func TestExactlyTheBudgetIsAdmittedAcrossLeaderKills(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		w.holdAll()
		const budget, takes, callers = 200, 600, 12
		limit := oneOff(budget)
		var admitted, denied atomic.Int64
		var next atomic.Uint64
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for seq := uint64(1); next.Add(1) <= takes; seq++ {
					q := ask(3, limit, 1, uint64(c+1), seq)
					q.FirstAttempt = true
					q.ID.Acked = seq - 1
					code, err := w.decide(q, 60*time.Second)
					switch {
					case err != nil:
						t.Errorf("take: %v", err)
					case code == bucket.Admitted || code == bucket.Repeated:
						admitted.Add(1)
					case code == bucket.Denied:
						denied.Add(1)
					default:
						t.Errorf("take: code %v", code)
					}
					time.Sleep(15 * time.Millisecond)
				}
			})
		}
		for range 4 {
			time.Sleep(100 * time.Millisecond)
			l := w.leader()
			w.kill(l)
			w.replace(l.id)
		}
		wg.Wait()
		if admitted.Load() != budget || denied.Load() != takes-budget {
			t.Errorf("admitted %d and denied %d of %d, want %d admitted", admitted.Load(), denied.Load(), takes, budget)
		}
	})
}

func TestChargedOnceAcrossLeaderChange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := oneOff(10)
		// The entry reaches the followers, but no answer comes back: its outcome is unknown.
		w.net.hook(hooks{lose: func(src, _ string, cmd any, answer bool) bool {
			a, ok := cmd.(*raft.AppendEntriesRequest)
			return src == l.id && answer && (ok && len(a.Entries) > 0 || heartbeat(cmd))
		}})
		q := ask(1, limit, 1, 1, 1)
		if _, _, err := take(l, q, 3*time.Second); !errors.Is(err, fault.OutcomeUnknown) {
			t.Fatalf("got %v, want outcome unknown", err)
		}
		w.kill(l)
		w.net.hook(hooks{})
		code, err := w.decide(q, 10*time.Second)
		if err != nil || code != bucket.Repeated {
			t.Errorf("the retry got %v, %v, want repeated", code, err)
		}
		if got := w.level(w.leader(), 1, limit); got != 9 {
			t.Errorf("%d tokens left, want 9", got)
		}
	})
}

func TestTwoOfThreeGoneAnswersNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		for _, o := range w.others(l) {
			w.kill(o)
		}
		time.Sleep(2 * time.Second)
		q := ask(1, oneOff(10), 1, 1, 1)
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			if code, _, err := take(l, q, 200*time.Millisecond); err == nil {
				t.Fatalf("a group without a majority answered %v", code)
			} else if !errors.Is(err, fault.NoLeader) && !errors.Is(err, fault.NotLeader) {
				t.Fatalf("got %v", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

func TestCutOffLeaderAdmitsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		w.net.isolate(l.id, true)
		limit := oneOff(5)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				q := ask(1, limit, 1, 1, uint64(i+1))
				if code, _, err := take(l, q, time.Second); err == nil && code != bucket.Denied {
					t.Errorf("the leader that was cut off answered %v", code)
				}
			})
		}
		n := w.leader(l)
		for i := range 5 {
			if code, _, err := take(n, ask(1, limit, 1, 2, uint64(i+1)), time.Second); err != nil || code != bucket.Admitted {
				t.Errorf("the new leader: %v, %v", code, err)
			}
		}
		wg.Wait()
		w.net.isolate(l.id, false)
		w.until(20*time.Second, "one state after the heal", func() bool {
			return l.r.Status().Chain == n.r.Status().Chain && l.r.Status().Leader != ""
		})
		if got := w.level(w.leader(), 1, limit); got != 0 {
			t.Errorf("%d tokens left, want 0", got)
		}
	})
}

func TestQueuedTakesAreAnsweredWhenLeadershipIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		w.net.isolate(l.id, true)
		begun := time.Now()
		var wg sync.WaitGroup
		var unknown, notCharged atomic.Int64
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				var out Outcome
				err := l.r.Take(context.Background(), []Request{ask(1, oneOff(5), 1, 1, uint64(i+1))}, &out)
				switch {
				case errors.Is(err, fault.OutcomeUnknown):
					unknown.Add(1)
				case errors.Is(err, fault.NoLeader) || errors.Is(err, fault.NotLeader):
					notCharged.Add(1)
				default:
					t.Errorf("take %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if unknown.Load() == 0 || notCharged.Load() == 0 || time.Since(begun) > 3*time.Second {
			t.Errorf("%d unknown, %d not charged after %v", unknown.Load(), notCharged.Load(), time.Since(begun))
		}
	})
}

func TestReplicasAreByteIdentical(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ns := w.start(3, nil)
		w.holdAll()
		for round := range 3 {
			l := w.leader()
			for i := range 200 {
				take(l, ask(uint64(i%40), perSecond(uint64(i%7+1)), uint64(i%3), uint64(round+1), uint64(i+1)), time.Second)
			}
			to := w.others(l)[0]
			w.until(30*time.Second, "a transfer", func() bool {
				return l.r.TransferTo(context.Background(), to.id) == nil || !l.r.Status().Leading
			})
			w.leader(l)
		}
		time.Sleep(5 * time.Second)
		seen := make(map[uint64]string) // by index: an idle follower trails by an entry
		equal := 0
		for range 40 {
			for _, n := range ns {
				at := n.r.Status().Applied
				d, err := n.r.fsm.dump()
				if err != nil {
					t.Fatal(err)
				}
				dump := readAll(t, d)
				switch other, ok := seen[at]; {
				case !ok:
					seen[at] = dump
				case other != dump:
					t.Fatalf("dumps at %d differ: %s has %d bytes, another %d", at, n.id, len(dump), len(other))
				default:
					equal++
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if equal < 80 {
			t.Errorf("%d dumps were compared", equal)
		}
	})
}

func TestUnreadableEntryStopsTheReplica(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		ns := w.start(3, nil)
		l := w.holdAll()
		before := l.r.Status().Applied
		err := l.r.raft.Load().Apply([]byte{0xee, 1, 2, 3}, time.Second).Error()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := take(l, ask(1, oneOff(5), 1, 1, 1), time.Second); !errors.Is(err, fault.Unavailable) {
			t.Errorf("after the entry: %v", err)
		}
		stopped := 0
		for _, n := range ns {
			select {
			case <-n.done:
			case <-time.After(10 * time.Second):
				// Once two have stopped nothing tells the third that the entry is committed.
				if s := n.r.Status(); s.Serving || s.Applied != before {
					t.Errorf("%s goes on: %+v", n.id, s)
				}
				continue
			}
			stopped++
			n.mu.Lock()
			if len(n.fatal) != 1 || n.err == nil {
				t.Errorf("%s reported %v, ran until %v", n.id, n.fatal, n.err)
			}
			n.mu.Unlock()
			if s := n.r.Status(); s.Failed == nil || s.Applied != before {
				t.Errorf("%s: %+v", n.id, s)
			}
		}
		if stopped < 2 {
			t.Errorf("%d replicas have stopped", stopped)
		}
	})
}

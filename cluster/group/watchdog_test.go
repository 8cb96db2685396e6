package group

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

func (n *testNode) reports() (broken, fatal int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.broken), len(n.fatal)
}

// hang makes n stop applying entries until the returned function is called.
func (n *testNode) hang() (release func()) {
	gate := make(chan struct{})
	f := n.r.driven.(*hangable)
	f.gate.Store(&gate)
	return func() { f.gate.Store(nil); close(gate) }
}

// hangable is a state machine that a test can stop in the middle of an entry.
type hangable struct {
	*fsm
	gate atomic.Pointer[chan struct{}] // not nil: hang until it is closed
}

func (h *hangable) Apply(l *raft.Log) any {
	if gate := h.gate.Load(); gate != nil {
		h.busy.Store(int64(time.Since(h.epoch)) + 1)
		<-*gate
	}
	return h.fsm.Apply(l)
}

func TestLeaderThatCannotApplyHandsOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		time.Sleep(time.Second)
		release := l.hang()
		begun := time.Now()
		q := ask(1, oneOff(10), 1, 1, 1)
		if _, _, err := take(l, q, 20*time.Second); !errors.Is(err, fault.OutcomeUnknown) {
			t.Errorf("the hanging leader: %v, want outcome unknown", err)
		}
		n := w.leader(l)
		if d := time.Since(begun); d > 7*time.Second {
			t.Errorf("answered after %v", d)
		}
		if code, err := w.decide(q, 5*time.Second); err != nil || code != bucket.Repeated {
			t.Errorf("the retry: %v, %v", code, err)
		}
		w.until(10*time.Second, "the replica is reported broken", func() bool { b, _ := l.reports(); return b == 1 })
		w.until(30*time.Second, "the replica is given up", func() bool { _, f := l.reports(); return f == 1 })
		if b, f := n.reports(); b+f > 0 {
			t.Errorf("the new leader reported %d, %d", b, f)
		}
		if d := n.r.metrics.Elections.Load(); d != 1 {
			t.Errorf("the new leader was elected %d times", d)
		}
		release()
		time.Sleep(5 * time.Second)
		w.identical(l, n)
	})
}

// TestTheOnlyReplicaWaits: what it holds is nowhere else, so it is not replaced, and goes
// on when it can.
func TestTheOnlyReplicaWaits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(1, nil)
		l := w.holdAll()
		time.Sleep(time.Second)
		release := l.hang()
		q := ask(1, oneOff(10), 1, 1, 1)
		if _, _, err := take(l, q, 2*time.Second); err == nil {
			t.Error("it answers though it hangs")
		}
		time.Sleep(time.Minute)
		if b, f := l.reports(); b+f > 0 {
			t.Errorf("it is reported broken %d times, given up %d times", b, f)
		}
		release()
		time.Sleep(time.Second)
		if code, err := w.decide(q, 5*time.Second); err != nil || code != bucket.Repeated && code != bucket.Admitted {
			t.Errorf("then %v, %v", code, err)
		}
	})
}

func TestLeaderThatCannotReplicateHandsOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		time.Sleep(time.Second)
		// Heartbeats pass, entries of this leader do not, except to one follower after a while.
		var stuck atomic.Bool
		stuck.Store(true)
		w.net.hook(hooks{lose: func(src, _ string, cmd any, answer bool) bool {
			a, ok := cmd.(*raft.AppendEntriesRequest)
			return src == l.id && ok && !answer && stuck.Load() && len(a.Entries) > 0
		}})
		begun := time.Now()
		q := ask(1, oneOff(10), 1, 1, 1)
		go func() { time.Sleep(1400 * time.Millisecond); stuck.Store(false) }()
		_, _, err := take(l, q, 20*time.Second)
		if code, derr := w.decide(q, 10*time.Second); derr != nil || code != bucket.Repeated && code != bucket.Admitted {
			t.Errorf("first %v, then %v, %v", err, code, derr)
		}
		if d := time.Since(begun); d > 6*time.Second {
			t.Errorf("took %v", d)
		}
		if got := w.level(w.leader(), 1, oneOff(10)); got != 9 {
			t.Errorf("%d tokens left, want 9", got)
		}
	})
}

// TestStallIsNoStandstillOfTime: an heir that was away has nothing from its leader that is
// younger than the stall, and must not go on from there.
func TestStallIsNoStandstillOfTime(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		w.net.hook(hooks{lose: func(src, _ string, cmd any, answer bool) bool { // heartbeats pass, entries do not
			a, ok := cmd.(*raft.AppendEntriesRequest)
			return src == l.id && ok && !answer && len(a.Entries) > 0 && l.r.metrics.Stalls.Load() == 0
		}})
		stalled := l.r.lead.clock.Load().now()
		_, _, _ = take(l, ask(1, oneOff(10), 1, 1, 2), 20*time.Second)
		last, newest := uint64(0), int64(0)
		w.until(5*time.Second, "a change of leader", func() bool { return w.leader() != l })
		n := w.leader()
		for at, _ := n.r.store.Last(); at > 0 && last == 0; at-- {
			var e raft.Log
			if n.r.store.GetLog(at, &e) == nil && e.Type == raft.LogCommand && e.Term < n.r.Status().Term {
				last = at
				newest, _ = bucket.EntryStamp(e.Data)
			}
		}
		if passed := time.Duration(newest - stalled); passed < l.r.timers.Stall {
			t.Errorf("the log of the stalled leader ends %v after the stall, with entry %d: want %v and more", passed, last, l.r.timers.Stall)
		}
	})
}

func TestStalledLeaderOutOfReachIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		w.net.hook(hooks{lose: func(src, _ string, cmd any, answer bool) bool {
			a, ok := cmd.(*raft.AppendEntriesRequest)
			_, now := cmd.(*raft.TimeoutNowRequest)
			return src == l.id && !answer && (now || ok && len(a.Entries) > 0)
		}})
		_, _, err := take(l, ask(1, oneOff(10), 1, 1, 1), time.Minute)
		if !errors.Is(err, fault.OutcomeUnknown) {
			t.Errorf("got %v", err)
		}
		w.until(time.Second, "a report", func() bool { b, _ := l.reports(); return b == 1 }) // just after the answer
		if l.r.metrics.Stalls.Load() == 0 {
			t.Error("no stall is counted")
		}
		w.net.hook(hooks{})
	})
}

func TestFollowerThatCannotApplyIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		o := w.others(l)[0]
		release := o.hang()
		for i := range 100 {
			if code, _, err := take(l, ask(1, oneOff(1000), 1, 1, uint64(i+1)), time.Second); err != nil || code != bucket.Admitted {
				t.Fatal(code, err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if b, _ := o.reports(); b != 1 {
			t.Errorf("%d reports", b)
		}
		if o.r.CanStand() {
			t.Error("it may stand for election")
		}
		release()
		w.identical(l, o)
	})
}

func TestRunEndsAlthoughApplyHangs(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		time.Sleep(time.Second)
		release := l.hang()
		answered := make(chan error, 1)
		go func() {
			var out Outcome
			answered <- l.r.Take(context.Background(), []Request{ask(1, oneOff(10), 1, 1, 1)}, &out)
		}()
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		l.cancel()
		<-l.done
		if d := time.Since(begun); l.err == nil || d > 10*time.Second {
			t.Errorf("run ended with %v after %v", l.err, d)
		}
		if err := <-answered; !errors.Is(err, fault.OutcomeUnknown) {
			t.Errorf("the take got %v", err)
		}
		l.err = nil
		release()
		w.leader(l)
		time.Sleep(time.Second)
	})
}

// A transfer whose message hangs leaves raft refusing all entries of a leader
// that heartbeats on (hashicorp/raft issue 696).
func TestWedgedTransferIsReported(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		time.Sleep(time.Second)
		w.net.hook(hooks{delay: func(_, _ string, cmd any) time.Duration {
			if _, ok := cmd.(*raft.TimeoutNowRequest); ok {
				return 20 * time.Second
			}
			return 100 * time.Microsecond
		}})
		if err := l.r.TransferTo(context.Background(), w.others(l)[0].id); !errors.Is(err, fault.Conflict) {
			t.Errorf("the transfer: %v", err)
		}
		begun := time.Now()
		if _, _, err := take(l, ask(1, oneOff(10), 1, 1, 1), time.Minute); err == nil || time.Since(begun) > 7*time.Second {
			t.Errorf("a take meanwhile: %v after %v", err, time.Since(begun))
		}
		time.Sleep(time.Second) // the report is the watchdog's next look
		if b, _ := l.reports(); b != 1 {
			t.Errorf("%d reports", b)
		}
		w.net.hook(hooks{})
		time.Sleep(20 * time.Second)
		if code, err := w.decide(ask(1, oneOff(10), 1, 1, 2), 10*time.Second); err != nil || code != bucket.Admitted {
			t.Errorf("afterwards: %v, %v", code, err)
		}
	})
}

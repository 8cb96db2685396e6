package group

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

func TestPromoteWaitsForCatchUp(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		ctx := context.Background()
		n := w.fresh(nil)
		if err := l.r.Promote(ctx, n.id); !errors.Is(err, fault.Conflict) {
			t.Errorf("promoting a stranger: %v", err)
		}
		w.net.isolate(n.id, true)
		if err := l.r.AddNonvoter(ctx, n.id); err != nil {
			t.Fatal(err)
		}
		if err := l.r.Promote(ctx, n.id); !errors.Is(err, fault.Conflict) {
			t.Errorf("promoting one out of reach: %v", err)
		}
		w.net.isolate(n.id, false)
		w.member("promote", func(ctx context.Context, l *Replica) error { return l.Promote(ctx, n.id) })
		w.until(5*time.Second, "four voters", func() bool { return len(l.r.Status().Voters) == 4 })
		for range 2 { // steps may be repeated
			w.member("add", func(ctx context.Context, l *Replica) error { return l.AddNonvoter(ctx, n.id) })
			w.member("promote", func(ctx context.Context, l *Replica) error { return l.Promote(ctx, n.id) })
		}
	})
}

func TestNoChangeThatLosesTheMajority(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		ctx := context.Background()
		o := w.others(l)
		w.kill(o[0])
		time.Sleep(time.Second)
		// With one of three dead, neither may the live follower go …
		if err := l.r.Remove(ctx, o[1].id); !errors.Is(err, fault.Conflict) {
			t.Errorf("removing the live follower: %v", err)
		}
		// … nor the leader itself; the dead one may.
		if err := l.r.Remove(ctx, l.id); !errors.Is(err, fault.Conflict) {
			t.Errorf("removing the leader: %v", err)
		}
		if err := l.r.Remove(ctx, o[0].id); err != nil {
			t.Errorf("removing the dead one: %v", err)
		}
		if err := l.r.Remove(ctx, o[0].id); err != nil {
			t.Errorf("once more: %v", err)
		}
		if code, _, err := take(l, ask(1, oneOff(5), 1, 1, 1), time.Second); err != nil || code != bucket.Admitted {
			t.Error(code, err)
		}
	})
}

func TestRemovedReplicaDoesNotDisturb(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		o := w.others(l)
		n := w.fresh(nil)
		w.join(n)
		w.member("remove", func(ctx context.Context, l *Replica) error { return l.Remove(ctx, o[0].id) })
		term := l.r.Status().Term
		time.Sleep(time.Minute)
		if s := l.r.Status(); s.Term != term || !s.Serving {
			t.Errorf("a minute after: %+v, before term %d", s, term)
		}
	})
}

func TestTransferIsGuarded(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		ctx := context.Background()
		o := w.others(l)
		w.net.isolate(o[0].id, true)
		if err := l.r.TransferTo(ctx, o[0].id); !errors.Is(err, fault.Conflict) {
			t.Errorf("to one out of reach: %v", err)
		}
		w.net.isolate(o[0].id, false)
		if err := l.r.TransferTo(ctx, "nobody"); !errors.Is(err, fault.Conflict) {
			t.Errorf("to a stranger: %v", err)
		}
		w.until(10*time.Second, "the transfer", func() bool { return l.r.TransferTo(ctx, o[0].id) == nil })
		if got := w.leader(); got != o[0] {
			t.Errorf("%s leads", got.id)
		}
		w.until(10*time.Second, "known", func() bool { return l.r.Status().Leader == o[0].id })
		if err := l.r.TransferTo(ctx, o[1].id); !errors.Is(err, fault.NotLeader) {
			t.Errorf("from a follower: %v", err)
		}
		n := w.leader()
		if err := n.r.TransferTo(ctx, l.id); err != nil {
			t.Errorf("back: %v", err)
		}
		w.leader(n)
	})
}

func TestTakesGoOnWhileLeadershipIsHandedOver(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		w.holdAll()
		stop := w.load(20, 20*time.Millisecond)
		for range 5 {
			l := w.leader()
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			if err := l.r.HandOver(ctx); err != nil {
				t.Errorf("hand over: %v", err)
			}
			cancel()
			w.leader(l)
			time.Sleep(500 * time.Millisecond)
		}
		admitted := stop()
		var used, unknown uint64
		l := w.leader()
		for k := range uint64(20) {
			used += 1_000_000 - w.level(l, k, oneOff(1_000_000))
		}
		for _, n := range w.all() {
			unknown += n.r.metrics.OutcomeUnknown.Load()
		}
		if used != uint64(admitted) || unknown > 0 {
			t.Errorf("%d tokens are used after %d admissions; %d outcomes were unknown", used, admitted, unknown)
		}
	})
}

func TestHandOverWithNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(1, nil)
		l := w.leader()
		if err := l.r.HandOver(context.Background()); !errors.Is(err, fault.Unavailable) {
			t.Errorf("got %v", err)
		}
	})
}

func TestLeadershipReturnsToItsOwner(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		o := w.others(l)[0]
		w.mu.Lock()
		w.owner = o.id
		w.mu.Unlock()
		begun := time.Now()
		w.until(time.Minute, "the owner leads", func() bool { return o.r.Status().Serving })
		if d := time.Since(begun); d < 8*time.Second || d > 20*time.Second {
			t.Errorf("after %v, want about 10 s", d)
		}
		// It loses leadership at once: the next return takes twice as long.
		var delays []time.Duration
		for range 3 {
			time.Sleep(time.Second)
			w.net.isolate(o.id, true)
			w.leader(o)
			w.net.isolate(o.id, false)
			begun = time.Now()
			w.until(5*time.Minute, "the owner leads again", func() bool { return o.r.Status().Serving })
			delays = append(delays, time.Since(begun))
		}
		for i, d := range delays {
			if want := 20 * time.Second << i; d < want-2*time.Second || d > want+8*time.Second {
				t.Errorf("return %d after %v, want about %v", i+1, d, want)
			}
		}
	})
}

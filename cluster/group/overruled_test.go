package group

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// A follower whose log has entries of a deposed leader above the snapshot it is
// sent is sent that snapshot for ever by hashicorp/raft alone (its issue 697).
func TestOverruledFollowerNeedsOneSnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, func(c *Config) { c.LogBytes = 1500 })
		a := w.holdAll()
		time.Sleep(time.Second)
		w.net.isolate(a.id, true)
		for i := range 20 {
			a.r.raft.Load().Apply(bucket.StampEntry(int64(i), 0), time.Second)
		}
		last := a.r.Status().LastIndex
		l := w.leader(a)
		for i := range 6 {
			take(l, ask(uint64(i), oneOff(10), 1, 1, uint64(i+1)), time.Second)
		}
		l.r.relieve(l.r.store.Fit())
		first, err := l.r.store.FirstIndex()
		if err != nil || first <= a.r.Status().Applied || first > last {
			t.Fatalf("the leader's log begins at %d, %v; the follower has applied %d and holds entries up to %d", first, err, a.r.Status().Applied, last)
		}
		w.net.isolate(a.id, false)
		w.identical(a, l)
		if n := a.r.metrics.SnapshotsReceived.Load(); n == 0 || n > 3 {
			t.Errorf("%d snapshots were sent", n)
		}
		if b, f := a.reports(); b+f > 0 {
			t.Errorf("reported %d, %d", b, f)
		}
	})
}

// TestLogStaysNearItsBound: a follower that is dead keeps nothing from being
// dropped, and one that seems to be sent a dump no more than it may be held.
func TestLogStaysNearItsBound(t *testing.T) {
	const bound = 256 << 10
	for name, c := range map[string]struct {
		away func(w *world, n *testNode)
		most int
	}{
		"dead":   {func(w *world, n *testNode) { w.kill(n) }, bound * 3 / 2},
		"silent": {func(w *world, n *testNode) { w.net.isolate(n.id, true) }, bound * 9 / 2},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, w *world) {
				w.start(3, func(c *Config) { c.LogBytes = bound })
				l := w.holdAll()
				c.away(w, w.others(l)[0])
				if most := flood(t, l); most > c.most {
					t.Errorf("the log took up to %d bytes, its bound is %d", most, bound)
				}
			})
		})
	}
}

// flood takes for 15 s, a third of a log of 256 KiB a second, and is the most memory
// that the log of l took.
func flood(t *testing.T, l *testNode) (most int) {
	var wg sync.WaitGroup
	for c := range 4 {
		wg.Go(func() {
			reqs := make([]Request, 100)
			var out Outcome
			for i := range 300 {
				for j := range reqs {
					reqs[j] = ask(uint64(i*j), oneOff(10), 1, 0, 0)
				}
				if err := l.r.Take(context.Background(), reqs, &out); err != nil {
					t.Errorf("caller %d: %v", c, err)
					return
				}
				if c == 0 {
					most = max(most, l.r.Status().LogBytes)
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	return most
}

func TestQuietReplicaCostsFewMessages(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		w.holdAll()
		time.Sleep(5 * time.Second)
		before := w.net.sent.Load()
		time.Sleep(time.Minute)
		// Two followers, each a heartbeat every 50 to 100 ms and an append every 1 to 2 s.
		if n := (w.net.sent.Load() - before) / 60; n > 32 {
			t.Errorf("%d messages a second", n)
		}
	})
}

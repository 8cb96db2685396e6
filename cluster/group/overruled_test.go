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

func TestLogStaysNearItsBound(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		const bound = 256 << 10
		w.start(3, func(c *Config) { c.LogBytes = bound })
		l := w.holdAll()
		w.net.isolate(w.others(l)[0].id, true) // a follower that is away keeps nothing from being dropped
		var wg sync.WaitGroup
		most := 0
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
				}
			})
		}
		wg.Wait()
		if most > bound*3/2 {
			t.Errorf("the log took up to %d bytes, its bound is %d", most, bound)
		}
	})
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

package group

import (
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// TestLogOfAnIdleGroupGoes: entries that no follower can be missing any more
// take no memory, and one that was away for longer is sent a dump.
func TestLogOfAnIdleGroupGoes(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		away := w.others(l)[0]
		w.net.isolate(away.id, true)
		stop := w.load(3000, 10*time.Millisecond)
		time.Sleep(20 * time.Second)
		stop()
		full := l.r.store.Bytes()
		if full <= pruneOver {
			t.Fatalf("the load left %d bytes of log", full)
		}
		time.Sleep(30 * time.Second)
		if got := l.r.store.Bytes(); got < full {
			t.Errorf("%d of %d bytes are left after half a minute: a follower may still ask for them", got, full)
		}
		time.Sleep(2 * time.Minute)
		for _, n := range w.all() {
			if got := n.r.store.Bytes(); n != away && got > pruneOver {
				t.Errorf("%s keeps %d of %d bytes", n.id, got, full)
			}
		}
		w.net.isolate(away.id, false)
		time.Sleep(10 * time.Second)
		if away.r.metrics.SnapshotsReceived.Load() == 0 {
			t.Error("the one that was away was sent no dump")
		}
		at := away.r.Status().Applied // an idle follower trails by an entry
		want, ok := w.leader().r.ChainAt(at)
		if got, also := away.r.ChainAt(at); !ok || !also || got != want {
			t.Errorf("at %d the one that was away has hash %x, %v, the leader %x, %v", at, got, also, want, ok)
		}
	})
}

// fewTakes makes a log of some entries, and returns the index of its first.
func fewTakes(t *testing.T, l *testNode) uint64 {
	for i := range uint64(100) {
		if code, _, err := take(l, ask(i, oneOff(10), 1, 1, i+1), time.Second); err != nil || code != bucket.Admitted {
			t.Fatal(code, err)
		}
	}
	first, _ := l.r.store.FirstIndex()
	return first
}

// TestSmallLogsAreLeftAlone: a group of few takes keeps what it has.
func TestSmallLogsAreLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		first := fewTakes(t, l)
		time.Sleep(10 * time.Minute)
		if now, _ := l.r.store.FirstIndex(); now != first {
			t.Errorf("the log begins at %d, before at %d", now, first)
		}
	})
}

// TestCompactionLeavesAnEntry: a log without any cannot be told from one that another
// leader overruled, and would be held for nobody.
func TestCompactionLeavesAnEntry(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		first := fewTakes(t, l)
		h := l.r.store.Hold(first+20, time.Minute)
		l.r.relieve(0)
		if got, _ := l.r.store.FirstIndex(); got != first+20 {
			t.Errorf("the log begins at %d while the entries from %d on are held", got, first+20)
		}
		h.For(0)
		l.r.relieve(0)
		if got, _ := l.r.store.FirstIndex(); got == 0 || got <= first+20 {
			t.Errorf("the log begins at %d", got)
		}
	})
}

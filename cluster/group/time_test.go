package group

import (
	"context"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// lossPerChange is what a change of leader may cost in group time: the way of
// one entry to a follower.
const lossPerChange = 5 * time.Millisecond

func TestTimeGoesOnOverLeaderChange(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 10, Burst: 1000, Window: int64(time.Second)}
		if code, _, err := take(l, ask(1, limit, 1000, 1, 1), time.Second); err != nil || code != bucket.Admitted {
			t.Fatal(code, err)
		}
		emptied := time.Now()
		w.kill(l)
		n := w.leader()
		time.Sleep(time.Until(emptied.Add(3 * time.Second)))
		got := w.level(n, 1, limit)
		passed := time.Since(emptied)
		most := uint64(10 * passed / time.Second)
		least := uint64(10 * (passed - lossPerChange) / time.Second)
		if got > most || got < least {
			t.Errorf("%d tokens after %v, want %d to %d", got, passed, least, most)
		}
	})
}

func TestFiveLeaderKillsNeitherRefillNorFreeze(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1000, Burst: 1_000_000, Window: int64(time.Second)}
		if code, _, err := take(l, ask(1, limit, 1_000_000, 1, 1), time.Second); err != nil || code != bucket.Admitted {
			t.Fatal(code, err)
		}
		emptied := time.Now()
		for range 5 {
			w.kill(l)
			w.replace(l.id)
			time.Sleep(300 * time.Millisecond)
			l = w.leader()
		}
		got := w.level(l, 1, limit)
		passed := time.Since(emptied)
		most := uint64(1000 * passed / time.Second)
		least := uint64(1000 * (passed - 6*lossPerChange) / time.Second)
		if got > most || got < least {
			t.Errorf("%d tokens after %v, want %d to %d", got, passed, least, most)
		}
	})
}

func TestIdleHourThenLeaderChangeLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 3600_000, Burst: 100_000_000, Window: int64(time.Hour)}
		if code, _, err := take(l, ask(1, limit, 100_000_000, 1, 1), time.Second); err != nil || code != bucket.Admitted {
			t.Fatal(code, err)
		}
		emptied := time.Now()
		time.Sleep(time.Hour)
		w.kill(l)
		got := w.level(w.leader(), 1, limit)
		passed := time.Since(emptied)
		most := uint64(passed / time.Millisecond)
		least := uint64((passed - 2*lossPerChange) / time.Millisecond)
		if got > most || got < least {
			t.Errorf("%d tokens after %v, want %d to %d", got, passed, least, most)
		}
	})
}

func TestIdleLeaderStampsEveryTenSeconds(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		before := l.r.Status().Applied
		time.Sleep(10 * time.Minute)
		if n := l.r.Status().Applied - before; n < 55 || n > 62 {
			t.Errorf("%d entries in ten idle minutes, want about 60", n)
		}
	})
}

func TestFullBucketsAreSweptWhileIdle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		for i := range 500 {
			take(l, ask(uint64(i), perSecond(1), 1, 0, 0), time.Second)
		}
		w.until(time.Minute, "no bucket left", func() bool { return l.r.Status().Buckets == 0 })
	})
}

func TestTimeNeverExceedsWhatHasPassed(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		w.holdAll()
		l := w.leader()
		begun, at := time.Now(), l.r.Status().Time
		for range 4 {
			to := w.others(l)[0]
			w.until(30*time.Second, "a transfer", func() bool {
				return l.r.TransferTo(context.Background(), to.id) == nil || !l.r.Status().Leading
			})
			l = w.leader()
			ns, ok := l.r.lead.clock.Load().now(), l.r.Serving()
			passed := time.Since(begun)
			if got := time.Duration(ns - at); !ok || got > passed+time.Millisecond || got < passed-5*lossPerChange-11*time.Second {
				t.Errorf("group time went on by %v in %v", got, passed)
			}
		}
	})
}

// Results outlive their buckets by far, and nobody may ever ask again.
func TestResultsAreForgottenWhileIdle(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		for i := range 500 {
			take(l, ask(uint64(i), perSecond(1), 1, uint64(i+1), 1), time.Second)
		}
		time.Sleep(bucket.Horizon / 2)
		if v := l.r.fsm.view.load(); v.buckets != 0 || v.records == 0 {
			t.Fatalf("%d buckets and %d records half a horizon later", v.buckets, v.records)
		}
		time.Sleep(3 * bucket.Horizon)
		for _, m := range append(w.others(l), l) {
			if v := m.r.fsm.view.load(); v.records != 0 {
				t.Errorf("%s keeps %d records", m.id, v.records)
			}
		}
		before := l.r.Status().Applied
		time.Sleep(time.Minute)
		if n := l.r.Status().Applied - before; n > 7 {
			t.Errorf("%d entries in an idle minute", n)
		}
	})
}

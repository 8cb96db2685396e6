package group

import (
	"context"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

func first(q Request) Request { q.FirstAttempt = true; return q }

func TestDenialNeedsNoCommit(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := oneOff(2)
		take(l, ask(1, limit, 2, 1, 1), time.Second)
		before := l.r.metrics.Entries.Load()
		for i := range 100 {
			code, out, err := take(l, first(ask(1, limit, 1, 1, uint64(i+2))), time.Second)
			if err != nil || code != bucket.Denied || !out.Uncommitted[0] || out.Index == 0 {
				t.Fatalf("%v, %v, %+v", code, err, out)
			}
		}
		if n := l.r.metrics.Entries.Load() - before; n != 0 {
			t.Errorf("%d entries", n)
		}
		for _, q := range []Request{
			ask(1, limit, 1, 1, 200),                  // a retry
			first(ask(1, limit, 1, 0, 0)),             // without an id
			first(ask(1, limit, 0, 1, 201)),           // a look
			{Request: ask(1, limit, 0, 0, 0).Request}, // a look without an id
		} {
			if _, out, err := take(l, q, time.Second); err != nil || out.Uncommitted[0] {
				t.Errorf("%+v was answered without a commit: %v", q, err)
			}
		}
		look := ask(1, limit, 0, 0, 0)
		look.StaleOK = true
		if code, out, err := take(l, look, time.Second); err != nil || code != bucket.Denied || !out.Uncommitted[0] {
			t.Errorf("a look that may be stale: %v, %v, %+v", code, err, out)
		}
	})
}

func TestMixedCallKeepsItsOrder(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		take(l, ask(1, oneOff(2), 2, 1, 1), time.Second)
		reqs := []Request{
			first(ask(1, oneOff(2), 1, 1, 2)), first(ask(2, oneOff(9), 4, 1, 3)),
			first(ask(1, oneOff(2), 1, 1, 4)), first(ask(3, oneOff(9), 5, 1, 5)),
		}
		var out Outcome
		for range 2 { // reused
			if err := l.r.Take(context.Background(), reqs, &out); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []struct {
			code        bucket.Code
			uncommitted bool
			remaining   uint64
		}{{bucket.Denied, true, 0}, {bucket.Repeated, false, 5}, {bucket.Denied, true, 0}, {bucket.Repeated, false, 4}} {
			it := out.Results.Items[i]
			if got := out.Results.Answers[it.First].Remaining; it.Code != want.code || out.Uncommitted[i] != want.uncommitted || got != want.remaining {
				t.Errorf("request %d: code %v, uncommitted %v, %d left; want %+v", i, it.Code, out.Uncommitted[i], got, want)
			}
		}
	})
}

func TestDenialUncommittedNeverOverAdmits(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := perSecond(50)
		begun := time.Now()
		admitted, uncommitted := 0, 0
		for i := range 4000 {
			code, out, err := take(l, first(ask(1, limit, 1, 1, uint64(i+1))), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if code == bucket.Admitted {
				admitted++
			}
			if out.Uncommitted[0] {
				uncommitted++
				time.Sleep(time.Millisecond)
			}
		}
		most := 50 + int(50*time.Since(begun)/time.Second) + 1
		if admitted > most || admitted < most-3 || uncommitted < 1000 {
			t.Errorf("admitted %d in %v, want about %d; %d without commit", admitted, time.Since(begun), most, uncommitted)
		}
	})
}

func TestDeposedLeaderDeniesAtMost(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		limit := oneOff(2)
		take(l, ask(1, limit, 2, 1, 1), time.Second)
		w.net.isolate(l.id, true)
		w.leader(l)
		for i := range 50 {
			code, _, err := take(l, first(ask(1, limit, 1, 1, uint64(i+2))), 20*time.Millisecond)
			if err == nil && code != bucket.Denied {
				t.Errorf("answered %v", code)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if _, _, err := take(l, first(ask(1, limit, 1, 1, 99)), 20*time.Millisecond); err == nil {
			t.Error("still answers a second after it was deposed")
		}
	})
}

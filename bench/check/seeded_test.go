package check

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// spend is a right history of keyed unit takes on a bucket without refill, some of
// them sent twice.
func spend(tb testing.TB, tokens uint64, n int) *world {
	w := newWorld(tb, 7)
	w.limit("z", frozenLimit(tokens))
	w.copies = 0.2
	w.setup.Exactly = []string{"z"}
	w.more(n)
	return w
}

func (w *world) more(n int) {
	w.run(n, func() ask {
		return ask{cost: 1, buckets: []string{"z"}, id: fmt.Sprint("k", len(w.ops), "-", w.rng.Uint64())}
	})
}

// pick is the n-th operation that fits.
func (w *world) pick(n int, fits func(*Op) bool) *Op {
	for i := range w.ops {
		if fits(&w.ops[i]) {
			if n--; n < 0 {
				return &w.ops[i]
			}
		}
	}
	w.tb.Fatal("no such operation")
	return nil
}

func admitted(o *Op) bool { return o.Outcome == Admitted && !o.Witness.Repeated && o.Kind != Look }

func refusedForNow(o *Op) bool { return o.Outcome == Denied }

func repeated(o *Op) bool { return o.Witness.Repeated }

func (o *Op) admit() { o.Outcome, o.Passed, o.RetryAfter = Admitted, true, 0 }

// TestSpoiltAnswersAreFound changes one answer of a right history; the checker named
// must see it.
func TestSpoiltAnswersAreFound(t *testing.T) {
	cases := []struct {
		name, checker, want string
		spoil               func(w *world)
	}{
		{"one admitted too many", "exact", "101 tokens", func(w *world) { w.pick(20, refusedForNow).admit() }},
		{"one admitted too few", "exact", "exactly 100", func(w *world) {
			o := w.pick(5, func(o *Op) bool { return admitted(o) && !copied(w.ops)[o.ID] })
			o.Outcome, o.Passed = Denied, false
		}},
		{"no answer at last", "exact", "without", func(w *world) {
			o := w.pick(9, refusedForNow)
			o.Outcome, o.Return, o.Code = Unknown, Forever, "deadline"
		}},
		{"without the cluster", "codes", "without the cluster", func(w *world) { w.pick(9, admitted).Degraded = true }},
		{"admitted after a denial", "final", "had said", func(w *world) { w.pick(30, refusedForNow).admit() }},
		{"a copy with another answer", "once", "different answers", func(w *world) { w.pick(2, repeated).ResetAfter++ }},
		{"a copy charged again", "once", "charged 2 times", func(w *world) { w.pick(2, repeated).Witness.Repeated = false }},
		{"a copy denied", "once", "was denied", func(w *world) {
			o := w.pick(3, repeated)
			o.Outcome, o.Passed, o.Call, o.Return = Denied, false, w.now, w.now+1
		}},
		{"another body admitted", "once", "two different bodies", func(w *world) { w.pick(3, repeated).Body = "other" }},
		{"another body denied", "once", "not refused as reused", func(w *world) {
			o := w.pick(3, repeated)
			o.Body, o.Outcome, o.Passed, o.Call, o.Return = "other", Denied, false, w.now, w.now+1
		}},
		{"the same body reused", "once", "same body", func(w *world) {
			o := w.pick(3, repeated)
			o.Outcome, o.Code, o.Call, o.Return = Refused, "id_reused", w.now, w.now+1
		}},
		{"an unknown code", "codes", "not documented", func(w *world) {
			o := w.pick(9, refusedForNow)
			o.Outcome, o.Code = Refused, "boom"
		}},
		{"perhaps charged and refused", "codes", "nothing was charged", func(w *world) {
			o := w.pick(9, refusedForNow)
			o.Outcome, o.Code = Refused, "outcome_unknown"
		}},
		{"no code", "codes", "without a code", func(w *world) { w.pick(9, refusedForNow).Outcome = Refused }},
		{"more than there is", "hints", "are left", func(w *world) { w.pick(9, admitted).Remaining = 101 }},
		{"a level that rose", "hints", "at most", func(w *world) { w.pick(60, admitted).Remaining = 70 }},
		{"a version that went back", "versions", "went back", func(w *world) { w.pick(50, admitted).Version = 2 }},
		{"a term that fell", "terms", "term 1", func(w *world) { w.pick(50, admitted).Witness.Term = 2 }},
		{"two requests in one place", "terms", "two requests", func(w *world) {
			w.pick(51, admitted).Witness = w.pick(50, admitted).Witness
		}},
		{"an entry before its cause", "order", "was decided at", func(w *world) { w.pick(90, admitted).Witness.Index = 3 }},
		{"a look behind its cause", "order", "knew nothing beyond", func(w *world) {
			o := w.pick(90, admitted)
			o.Kind, o.Cost, o.Witness.Uncommitted, o.Witness.Index = Look, 0, true, 3
		}},
		{"slot time that stood still", "kept", "at least", func(w *world) {
			o := w.pick(60, admitted)
			o.Call, o.Return = o.Call+time.Second, o.Return+time.Second
		}},
		{"slot time that ran", "time", "at most", func(w *world) { w.pick(50, admitted).Witness.SlotTime += 20 * time.Second }},
		{"slot time that stepped back", "time", "stepped back", func(w *world) { w.pick(50, admitted).Witness.SlotTime -= 20 * time.Second }},
		{"an answer without a majority", "majority", "had no majority", func(w *world) {
			o := w.pick(50, admitted)
			w.setup.Silences = []Silence{{1, Span{o.Call, o.Return}}}
		}},
		{"one number", "replay", "does not follow", func(w *world) { w.pick(50, admitted).ResetAfter += 5 }},
		{"a stale answer", "replay", "does not follow", func(w *world) { w.pick(50, admitted).Remaining++ }},
		{"a stale answer, from outside", "linear", "no order", func(w *world) { w.pick(60, admitted).Remaining += 15 }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := spend(t, 100, 200)
			w.setup.Strict = true
			if names, all := found(&w.setup, w.ops); names != nil {
				t.Fatalf("before: %v", all)
			}
			c.spoil(w)
			expect(t, w, c.checker, c.want)
		})
	}
}

// expect wants a finding of one checker; others may find the same.
func expect(t *testing.T, w *world, checker, want string) {
	t.Helper()
	_, all := found(&w.setup, w.ops)
	for _, f := range all {
		if f.Checker == checker && strings.Contains(f.Sentence, want) {
			return
		}
	}
	t.Errorf("%s found nothing about %q; found: %v", checker, want, all)
}

// TestBrokenClustersAreFound breaks the cluster, not the history.
func TestBrokenClustersAreFound(t *testing.T) {
	saturate := func(w *world, l Limit, n int) {
		w.limit("r", l)
		w.run(n, func() ask { return ask{cost: 1 + w.rng.Uint64N(3), buckets: []string{"r"}} })
	}
	again := func(w *world, n int) {
		w.run(n, func() ask { return ask{cost: 1 + w.rng.Uint64N(3), buckets: []string{"r"}} })
	}
	cases := []struct {
		name     string
		checkers []string
		spoil    func(w *world)
	}{
		{"refilled at failover", []string{"window", "replay"}, func(w *world) {
			saturate(w, tokenLimit(10, 100), 200)
			w.renew()
			again(w, 200)
		}},
		{"a clock half as fast again", []string{"window", "time"}, func(w *world) {
			w.rate = 1.5
			saturate(w, tokenLimit(100, 20), 2000)
		}},
		{"an outage forgotten that fills the bucket", []string{"kept"}, func(w *world) {
			saturate(w, tokenLimit(5, 10), 200)
			w.outage(3*time.Second, 3*time.Second)
			again(w, 200)
		}},
		{"time forgotten at failover", []string{"starved", "kept"}, func(w *world) {
			saturate(w, tokenLimit(100, 1000), 800)
			w.outage(3*time.Second, 3*time.Second)
			again(w, 200)
		}},
		{"entries lost at failover", []string{"replay", "linear"}, func(w *world) {
			w.limit("z", frozenLimit(400))
			w.more(100)
			w.lose(15)
			w.more(100)
		}},
		{"every charge twice", []string{"replay", "exact", "linear"}, func(w *world) {
			w.limit("z", frozenLimit(100))
			w.setup.Exactly = []string{"z"}
			w.twice = true
			w.more(200)
		}},
		{"sliding log twice over", []string{"window", "replay"}, func(w *world) {
			saturate(w, Limit{Algorithm: bucket.SlidingLog, Amount: 20, Window: int64(time.Second)}, 100)
			w.renew()
			again(w, 100)
		}},
		{"fixed window thrice over", []string{"window", "replay"}, func(w *world) {
			saturate(w, Limit{Algorithm: bucket.FixedWindow, Amount: 20, Window: int64(time.Second)}, 60)
			for range 2 {
				w.renew()
				again(w, 60)
			}
		}},
		{"permits forgotten", []string{"permits"}, func(w *world) {
			w.limit("p", Limit{Algorithm: bucket.Concurrency, Amount: 3, Window: int64(time.Minute)})
			for range 2 {
				w.run(20, func() ask { return ask{kind: Acquire, cost: 1, buckets: []string{"p"}} })
				w.renew()
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 3)
			c.spoil(w)
			names, all := found(&w.setup, w.ops)
			for _, want := range c.checkers {
				if !slices.Contains(names, want) {
					t.Errorf("%s found nothing; found %v", want, all)
				}
			}
		})
	}
}

// TestPermitFaultsAreFound spoils what permits say.
func TestPermitFaultsAreFound(t *testing.T) {
	renewal := func(o *Op) bool { return o.Kind == Renew && o.Outcome == Admitted }
	cases := []struct {
		name, want string
		spoil      func(w *world)
	}{
		{"a token twice", "granted twice", func(w *world) { w.pick(9, admittedGrant).Token = w.pick(4, admittedGrant).Token }},
		{"a token that fell", "came after", func(w *world) { w.pick(15, admittedGrant).Token = 0 }},
		{"a permit lost", "before its time", func(w *world) {
			o := w.pick(3, renewal)
			o.Outcome = Denied
		}},
		{"a permit held on", "after its time", func(w *world) {
			o := w.pick(3, renewal)
			o.Call, o.Return = w.now+time.Hour, w.now+time.Hour+1
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := permitRun(t, 5)
			c.spoil(w)
			expect(t, w, "permits", c.want)
		})
	}
}

func admittedGrant(o *Op) bool {
	return o.Kind == Acquire && o.Outcome == Admitted && !o.Witness.Repeated && o.Token > 0
}

// TestWholeAnswers spoils answers under two limits.
func TestWholeAnswers(t *testing.T) {
	cases := []struct {
		want  string
		spoil func(a, b *Op)
	}{
		{"", func(a, b *Op) {}},
		{"although this bucket denied", func(a, b *Op) { a.Outcome, b.Outcome = Admitted, Admitted }},
		{"at once", func(a, b *Op) { a.Outcome = Admitted }},
		{"although no bucket", func(a, b *Op) { b.Passed = true }},
		{"mixes", func(a, b *Op) { a.Policy, b.Policy, b.Version = "p", "p", 9 }},
	}
	for _, c := range cases {
		w := newWorld(t, 1)
		w.limit("a", frozenLimit(9))
		w.limit("b", frozenLimit(1))
		for range 2 {
			w.entry([]ask{{cost: 1, buckets: []string{"a", "b"}}}, nil)
		}
		ops := w.ops[len(w.ops)-2:]
		c.spoil(&ops[0], &ops[1])
		v := Whole(&w.setup, w.ops)
		if c.want == "" && len(v.Findings) > 0 || c.want != "" && (len(v.Findings) != 1 || !strings.Contains(v.Findings[0].Sentence, c.want)) {
			t.Errorf("%q: %v", c.want, v.Findings)
		}
	}
}

// TestRetryAfterIsHeldTo: a lonely retry after its time that is denied is found.
func TestRetryAfterIsHeldTo(t *testing.T) {
	w := newWorld(t, 1)
	w.limit("r", tokenLimit(10, 10))
	w.entry([]ask{{cost: 10, buckets: []string{"r"}, call: w.now}}, nil)
	w.now += 5 * time.Millisecond
	w.entry([]ask{{cost: 5, buckets: []string{"r"}, call: w.now}}, nil)
	w.now += time.Second
	w.skew -= time.Second // the cluster's clock stood still
	w.entry([]ask{{cost: 5, buckets: []string{"r"}, call: w.now}}, nil)
	expect(t, w, "hints", "should wait")
	w.setup.Faults, w.setup.LostTime = []Fault{{"pause", Span{w.now - time.Second, w.now}}}, time.Second
	if v := Hints(&w.setup, w.ops); len(v.Findings) > 0 {
		t.Errorf("an excused second: %v", v.Findings)
	}
}

func TestReplicasThatDiffer(t *testing.T) {
	seen := []Replica{
		{"a", 1, 1, 5, 50}, {"b", 1, 1, 6, 60}, {"c", 1, 1, 5, 50}, {"a", 1, 1, 6, 60}, {"a", 1, 2, 5, 51}, {"b", 2, 1, 5, 52},
	}
	if v := Replicas(seen); v.Checked != 2 || len(v.Findings) > 0 {
		t.Errorf("equal ones: %+v", v)
	}
	seen[1].Chain = 61
	if v := Replicas(seen); len(v.Findings) != 1 || !strings.Contains(v.Findings[0].Sentence, "index 6") {
		t.Errorf("different ones: %+v", v)
	}
}

func TestResourcesThatGrew(t *testing.T) {
	before := []Sample{{"a", 100, 50, 100 << 20}, {"b", 100, 50, 100 << 20}, {"gone", 1, 1, 1}}
	after := []Sample{{"a", 139, 69, 130 << 20}, {"b", 100, 50, 50 << 20}, {"new", 9999, 9999, 1 << 40}}
	if v := Resources(before, after, DefaultSlack); v.Checked != 2 || len(v.Findings) > 0 {
		t.Errorf("at rest: %+v", v)
	}
	after[1] = Sample{"b", 141, 71, 137 << 20}
	if v := Resources(before, after, DefaultSlack); len(v.Findings) != 3 {
		t.Errorf("grown: %+v", v)
	}
}

func TestRunsThatProveNothing(t *testing.T) {
	w := spend(t, 100, 300)
	mid := w.ops[len(w.ops)/2].Call
	w.setup.Faults = []Fault{{"kill", Span{mid, mid + time.Millisecond}}}
	if v := Void(&w.setup, w.ops); len(v.Doubts) > 0 {
		t.Errorf("a run with load: %v", v.Doubts)
	}
	for _, f := range []Fault{{"late", Span{w.now + time.Second, w.now + 2*time.Second}}, {"always", Span{0, w.now + time.Second}}} {
		w.setup.Faults = []Fault{f}
		if v := Void(&w.setup, w.ops); len(v.Doubts) != 1 {
			t.Errorf("%s: %v", f.Name, v.Doubts)
		}
	}
	w.setup.Faults = nil
	if v := Void(&w.setup, w.ops[:50]); len(v.Doubts) != 1 {
		t.Errorf("little load: %v", v.Doubts)
	}
}

// BenchmarkCheckers times each checker on 100,000 operations: of ten buckets, keyed,
// with a percent of the outcomes unknown.
func BenchmarkCheckers(b *testing.B) {
	w := newWorld(b, 1)
	var names []string
	for i := range 10 {
		names = append(names, fmt.Sprint("b", i))
		w.limit(names[i], tokenLimit(500, 200))
	}
	w.limit(names[0], frozenLimit(5000))
	w.limit(names[1], Limit{Algorithm: bucket.SlidingLog, Amount: 100, Window: int64(time.Second)})
	w.limit(names[2], Limit{Algorithm: bucket.FixedWindow, Amount: 100, Window: int64(time.Second)})
	w.lossy, w.copies, w.peeking = 0.01, 0.1, true
	w.run(100_000, func() ask {
		return ask{cost: 1, buckets: names[w.rng.IntN(10):][:1], id: fmt.Sprint("k", w.rng.Uint64())}
	})
	for _, c := range Checkers() {
		b.Run(c.Name, func(b *testing.B) {
			for b.Loop() {
				if v := c.Judge(&w.setup, w.ops); len(v.Findings) > 0 {
					b.Fatal(v.Findings)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms/100k")
		})
	}
}

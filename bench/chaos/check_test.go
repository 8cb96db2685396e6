package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// spent returns the records of a bucket without refill that behaves: n unit
// takes one after the other, the first budget of them admitted.
func spent(n, budget int) []record {
	recs := make([]record, n)
	for i := range recs {
		at := time.Duration(i) * time.Millisecond
		recs[i] = record{call: at, ret: at + time.Millisecond/2, ans: answer{
			allowed: i < budget, slotTime: int64(1000 * i), group: 1, term: 2, index: uint64(10 + i),
			remaining: uint64(max(0, budget-1-i)),
		}}
	}
	return recs
}

// TestCheckersPassWhatIsRight: no false alarm on a cluster that keeps its word.
func TestCheckersPassWhatIsRight(t *testing.T) {
	recs := spent(50, 20)
	recs[3].ans.slotTime, recs[4].ans.slotTime = 3500, 3500 // decided in one entry
	for name, broken := range map[string][]string{
		"exact": checkExact(recs, 20), "spending": checkSpending(recs, 20),
		"final": checkDenialIsFinal(recs), "terms": checkTerms(recs),
	} {
		if len(broken) > 0 {
			t.Errorf("%s: %q", name, broken)
		}
	}
}

// TestSeededFaultsAreFound breaks one thing at a time; the checker named must see it.
func TestSeededFaultsAreFound(t *testing.T) {
	exact := func(r []record) []string { return checkExact(r, 20) }
	spending := func(r []record) []string { return checkSpending(r, 20) }
	cases := []struct {
		name    string
		spoil   func([]record)
		checker func([]record) []string
		want    string
	}{
		{"one admitted too many", func(r []record) { r[30].ans.allowed = true }, exact, "admitted 21"},
		{"one admitted too few", func(r []record) { r[5].ans.allowed = false }, exact, "admitted 19"},
		{"an error reached the caller", func(r []record) { r[40].err = errors.New("no leader") }, exact, "no leader"},
		{"answered without the cluster", func(r []record) { r[7].ans.degraded = true }, exact, "degraded"},
		{"two leaders spent one token", func(r []record) { r[9].ans.remaining = r[8].ans.remaining }, spending, "admission"},
		{"a token came back", func(r []record) { r[30].ans.allowed, r[30].ans.remaining = true, 0 }, spending, "admission 21"},
		{"a charge stands twice", func(r []record) {
			for i := 10; i < 20; i++ {
				r[i].ans.remaining--
			}
		}, spending, "admission 11"},
		{"admitted after a denial", func(r []record) { r[30].ans.allowed = true }, checkDenialIsFinal, "had denied"},
		{"the term fell", func(r []record) { r[12].ans.term = 1 }, checkTerms, "term 1"},
		{"one index in two terms", func(r []record) { r[12].ans.index, r[12].ans.term = 11+10, 3 }, checkTerms, "index 21"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			recs := spent(50, 20)
			c.spoil(recs)
			if broken := strings.Join(c.checker(recs), "; "); !strings.Contains(broken, c.want) {
				t.Errorf("found %q, want something about %q", broken, c.want)
			}
		})
	}
}

// TestUnknownOutcomesDoNotExcuseAdmissions: failed takes may lower what must be
// admitted, never raise what may be.
func TestUnknownOutcomesDoNotExcuseAdmissions(t *testing.T) {
	recs := spent(50, 20)
	recs[0].err = errors.New("deadline")
	recs[45].ans.allowed, recs[46].ans.allowed = true, true
	if broken := strings.Join(checkExact(recs, 20), "; "); !strings.Contains(broken, "admitted 21") {
		t.Errorf("found %q", broken)
	}
}

func TestRateBounds(t *testing.T) {
	r := rate{perSecond: 10, burst: 100}
	cases := []struct {
		took        time.Duration
		most, least int
	}{
		{0, 100, 0},
		{time.Second, 110, 9}, // a clock 200 ppm slow has not quite made the tenth
		{1050 * time.Millisecond, 110, 10},
		{time.Minute, 700, 100},
	}
	for _, c := range cases {
		if most, least := r.most(c.took), r.least(c.took, 0); most != c.most || least != c.least {
			t.Errorf("%v: %d … %d, want %d … %d", c.took, least, most, c.least, c.most)
		}
	}
	if got := r.least(3*time.Second, replicationDelay); got != 27 {
		t.Errorf("3 s less a replication delay: %d, want 27", got)
	}
}

func TestQuantile(t *testing.T) {
	d := []time.Duration{4, 1, 3, 2}
	if quantile(nil, 0.5) != 0 || quantile(d, 0.5) != 3 || quantile(d, 1) != 4 || quantile(d, 0) != 1 {
		t.Error("wrong quantiles")
	}
	if d[0] != 4 {
		t.Error("the argument was sorted")
	}
}

func TestMoved(t *testing.T) {
	if got := moved([]uint32{0, 1, 2}, []uint32{0, 1, 2}); got != nil {
		t.Errorf("equal: %q", got)
	}
	if got := moved([]uint32{0, 1, 2}, []uint32{0, 2, 1}); len(got) != 1 || !strings.Contains(got[0], "2 of 3") {
		t.Errorf("two moved: %q", got)
	}
	if moved(nil, nil) == nil || moved([]uint32{1}, nil) == nil {
		t.Error("no slots pass for slots that stayed")
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/policy"
)

// TestPoliciesAreValid also holds the flood's limit to a twentieth of the flood.
func TestPoliciesAreValid(t *testing.T) {
	set, err := policy.Parse("policies.yaml", policies)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(set.Policies, func(p *policy.Policy) bool { return p.ID == "flood" })
	if got := set.Policies[i].Limit.Amount; int64(got) != floodRate/20 {
		t.Errorf("the flood is given %v a second; want %d", got, floodRate/20)
	}
}

func TestParseRefusesWrongFlags(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"nonsense"},
		{"-o", "xml", "open"},
		{"-keys", "100,10", "keys"},
		{"-keys", "x", "keys"},
		{"-nodes", "2", "nodes"},
		{"-batch", "1001", "keys"},
		{"-limit", "0s", "open"},
		{"-per-group", "0", "nodes"},
	} {
		if _, err := parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q were taken", args)
		}
	}
	o, err := parse([]string{"-nodes", "3,7", "open", "calm"}, &bytes.Buffer{})
	if err != nil || !slices.Equal(o.nodes, []int{3, 7}) || len(o.names) != 2 || o.length(time.Second) != time.Second {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestEachSizeIsComparedWithOneOfItsKind: as many groups, or one for each node.
func TestEachSizeIsComparedWithOneOfItsKind(t *testing.T) {
	want := []size{{3, 3}, {3, 1}, {7, 7}, {7, 3}, {7, 1}}
	if got := sizes([]int{3, 7}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for s, base := range map[size]size{{3, 3}: {3, 3}, {7, 7}: {3, 3}, {7, 3}: {3, 3}, {7, 1}: {3, 1}} {
		if s.base(3) != base {
			t.Errorf("%v is compared with %v, want %v", s, s.base(3), base)
		}
	}
}

func TestCostIsThatOfTheTimeMeasured(t *testing.T) {
	at := time.Now()
	from := usage{at, time.Second, 10 * time.Second, 100 * time.Second}
	to := usage{at.Add(10 * time.Second), 3 * time.Second, 16 * time.Second, 113 * time.Second}
	o := outcome{Report: load.Report{Requests: 2_000_000}}
	o.spent(&from, &to, 2)
	if o.perMillion(o.client) != 1 || o.perMillion(o.nodes) != 3 || o.perMillion(o.total()) != 4 {
		t.Errorf("%+v", o)
	}
	if math.Abs(o.foreign-0.25) > 1e-9 {
		t.Errorf("foreign %v, want 0.25: 5 s of 2 × 10", o.foreign)
	}
}

func TestMiddleIsTheMedian(t *testing.T) {
	if m := middle([]int{30, 10, 20}, func(i int) float64 { return float64(i) }); m != 20 {
		t.Error(m)
	}
}

func TestTrafficDeniesItsShare(t *testing.T) {
	request := uniform(1000, 0.1, 7)
	denied, keys := 0, map[string]bool{}
	for i := range int64(100_000) {
		q := request(i)
		if q.Plan == "spent" {
			denied++
		} else {
			keys[q.Tenant] = true
		}
	}
	if denied < 9700 || denied > 10_300 || len(keys) != 1000 {
		t.Errorf("%d of 100000 denied, %d keys", denied, len(keys))
	}
	if uniform(1000, 0, 1)(5).Tenant == uniform(1000, 0, 2)(5).Tenant {
		t.Error("two seeds draw alike")
	}
}

// heapPage is the text of a heap profile, sampled once in 512 KiB: 100 segments of
// 128 KiB, 10 pages of results, and others.
const heapPage = `heap profile: 6: 7 [8: 9] @ heap/1048576
100: 13107200 [200: 26214400] @ 0x1 0x2
#	0x1	github.com/ringlimit/ringlimit/bucket.(*segment).resize+0x10	/x/segment.go:129
#	0x2	github.com/ringlimit/ringlimit/bucket.(*ids).push+0x10	/x/ids.go:1

10: 10485760 [10: 10485760] @ 0x3 0x4
#	0x3	runtime.mallocgc+0x1	/x
#	0x4	github.com/ringlimit/ringlimit/bucket.(*pool).take+0x10	/x/pool.go:35

5: 5242880 [5: 5242880] @ 0x5
#	0x5	github.com/ringlimit/ringlimit/internal/ringlog.(*Store).StoreLogs+0x10	/x

# runtime.MemStats
# Alloc = 1234
`

func TestHeapIsToldApart(t *testing.T) {
	cells, results, err := parts(strings.NewReader(heapPage))
	scale := func(bytes, each float64) float64 { return bytes / (1 - math.Exp(-each/(512<<10))) }
	if want := scale(13107200, 131072); err != nil || math.Abs(cells-want) > 1 {
		t.Errorf("cells %v, want %v; %v", cells, want, err)
	}
	if want := scale(10485760, 1<<20); math.Abs(results-want) > 1 {
		t.Errorf("results %v, want %v", results, want)
	}
	if _, _, err := parts(strings.NewReader("404 page not found")); err == nil {
		t.Error("another page was read")
	}
}

func TestWeightIsWithoutLogAndResults(t *testing.T) {
	w := weight{heap: 100, log: 20, results: 30}
	if w.rest() != 50 {
		t.Error(w.rest())
	}
}

func TestRecoveryIsTwoShortTailsInARow(t *testing.T) {
	for _, c := range []struct {
		tails []int64
		want  int
	}{
		{nil, -1},
		{[]int64{5}, -1},
		{[]int64{5, 5}, 0},
		{[]int64{50, 5, 50, 10, 9, 50}, 3},
		{[]int64{50, 5, 50, 5}, -1},
	} {
		if got := calmFrom(c.tails, 10); got != c.want {
			t.Errorf("%v: %d, want %d", c.tails, got, c.want)
		}
	}
}

func TestProcessorsAreSplit(t *testing.T) {
	for cores, want := range map[int][2]string{1: {"", ""}, 2: {"0", "1"}, 3: {"0", "1-2"}, 8: {"0-3", "4-7"}} {
		nodes, own, ok := halves(cores)
		if nodes != want[0] || own != want[1] || ok != (cores > 1) {
			t.Errorf("%d: %q, %q, %v", cores, nodes, own, ok)
		}
	}
}

func TestBurnersUseMoreThreadsThanCores(t *testing.T) {
	if burners(0.3) != 2 || burners(1.2) != 4 {
		t.Errorf("%d, %d", burners(0.3), burners(1.2))
	}
}

func TestBurnUsesItsShare(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	before := used()
	go burn(ctx, 0.5)
	<-ctx.Done()
	if got := used() - before; got <= 0.005 { // other processes may leave it little
		t.Errorf("burnt %v s", got)
	}
}

func TestReportIsWritten(t *testing.T) {
	r := &Result{Name: "open", What: "latency"}
	r.row("even", Figure{"p99 ms", 2.5}, Figure{"ratio", math.NaN()})
	r.atMost("p99, ms", 2.5, 5)
	r.atLeast("goodput", 0.7, 0.8)
	r.note("said")
	rep := &Report{Results: []*Result{r}}
	var text, out bytes.Buffer
	if err := rep.write(&text, "text"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"p99 ms", "2.5", "said", "met     p99, ms: 2.5, aim at most 5", "MISSED  goodput: 0.7, aim at least 0.8"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, &text)
		}
	}
	if rep.met() {
		t.Error("a missed aim passed")
	}
	if err := rep.write(&out, "json"); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Results []struct{ Rows []map[string]any }
	}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back.Results[0].Rows[0]["p99 ms"] != 2.5 || back.Results[0].Rows[0]["ratio"] != nil {
		t.Errorf("%v: %s", err, &out)
	}
	met := &Result{}
	met.atMost("x", 1, 1)
	if ok := (&Report{Results: []*Result{met}}); !ok.met() {
		t.Error("a value at its aim misses it")
	}
	met.atMost("x", math.NaN(), 1)
	if bad := (&Report{Results: []*Result{met}}); bad.met() {
		t.Error("no number reached an aim")
	}
}

// TestMeasurementEndsAtItsLimit, and says so.
func TestMeasurementEndsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{options: options{limit: time.Minute}}
		m := measurement{lasts: time.Hour, measure: func(ctx context.Context, _ *bench, _ *Result) error {
			if _, set := ctx.Deadline(); set {
				t.Error("the context has a deadline")
			}
			<-ctx.Done()
			return ctx.Err()
		}}
		began := time.Now()
		err := m.within(t.Context(), b, &Result{})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1h1m0s") || time.Since(began) != 61*time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestShuffledIsOneCycle(t *testing.T) {
	ring := shuffled(1000)
	at, steps := uint32(0), 0
	for at, steps = ring[at], 1; at != 0 && steps <= 1000; steps++ {
		at = ring[at]
	}
	if steps != 1000 {
		t.Errorf("back after %d steps, want 1000", steps)
	}
	if ns := timed(1000, func() { at = ring[at] }); ns <= 0 {
		t.Errorf("%v ns a step", ns)
	}
}

package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// traffic is what goes on while a cluster changes: callers with the client
// library's own deadline, on buckets without refill whose end is reached and
// judged at last, and on buckets that lie idle meanwhile.
type traffic struct {
	a    *arena
	load *load
	busy []key
	wide []key
	idle []key
	left int // takes that each idle key still admits
}

const (
	busyBudget = 3000
	idleBudget = 10
	callersAt  = 2 * time.Second // the client library's default deadline
)

// startTraffic spends a part of idle buckets, and begins the load.
func (a *arena) startTraffic(ctx context.Context) *traffic {
	t := &traffic{a: a, idle: a.tens(a.few(200, 60)), left: idleBudget}
	for range a.few(8, 4) {
		t.busy = append(t.busy, a.fresh("budget"))
	}
	for range a.few(56, 40) {
		t.wide = append(t.wide, a.fresh("wide"))
	}
	t.spendIdle(ctx, "before", 2)
	t.load = a.startLoad(ctx, append(t.busy[:len(t.busy):len(t.busy)], t.wide...),
		loadPlan{workers: 24, pace: 15 * time.Millisecond, deadline: callersAt})
	return t
}

// few is a number of a full run or of a short one.
func (a *arena) few(full, short int) int {
	if a.short {
		return short
	}
	return full
}

// spendIdle takes n from each idle bucket; all must be admitted as long as there
// are so many left.
func (t *traffic) spendIdle(ctx context.Context, where string, n int) {
	want := min(n, t.left)
	for i, recs := range t.a.each(ctx, t.idle, n) {
		if got, _, failed := tally(recs); got != want || failed > 0 {
			t.a.report.violate(where, fmt.Sprintf("idle key %d: %d of %d takes admitted, %d failed; want %d", i, got, n, failed, want))
		}
	}
	t.left -= want
}

// each makes n takes on each key, one after the other, several keys at a time.
func (a *arena) each(ctx context.Context, keys []key, n int) [][]record {
	recs := make([][]record, len(keys))
	inParallel(len(keys), 8, func(i int) { recs[i] = a.volley(ctx, keys[i], n, 1, nil) })
	return recs
}

// stop ends the load and judges all of it. It returns the waits of callers whose
// slot moved under them.
func (t *traffic) stop(ctx context.Context, where string) {
	recs := t.load.stop()
	r := t.a.report
	t.judgeFailures(where, recs)
	took, failed, _ := summarise(recs)
	var waits []time.Duration
	moves := 0
	for _, list := range recs {
		w, m := waitsOfMoves(list)
		waits, moves = append(waits, w...), moves+m
	}
	for _, k := range t.wide {
		t.a.judge(where, k, recs[k])
	}
	for _, k := range t.busy {
		spent, _, _ := tally(recs[k])
		rest := t.a.volley(ctx, k, max(0, busyBudget-spent)+50, 32, nil)
		t.a.judgeExact(where, k, append(recs[k], rest...))
	}
	t.spendIdle(ctx, where, t.left+2)
	r.show("takes", "%d, %d failed, p99 %v, max %v", len(took), failed,
		quantile(took, 0.99).Round(100*time.Microsecond), quantile(took, 1).Round(time.Millisecond))
	if moves > 0 {
		r.show("callers of moving slots", "%d waited p50 %v, p99 %v, max %v (%d keys moved)", len(waits), quantile(waits, 0.5).Round(100*time.Microsecond),
			quantile(waits, 0.99).Round(time.Millisecond), quantile(waits, 1).Round(time.Millisecond), moves)
	}
	if len(took) < 500 {
		r.doubt("%s: only %d requests", where, len(took))
	}
}

// judgeFailures wants none, but for those of a time in which the machine stood
// still. A take that failed may have been charged, so the budget of its key is then
// not known.
func (t *traffic) judgeFailures(where string, recs map[key][]record) {
	seen := t.a.stalls.list()
	failed, excuses := 0, 0
	var first error
	for k, list := range recs {
		for _, r := range list {
			switch {
			case r.err == nil:
			case excused(r, seen):
				excuses++
				t.busy = slices.DeleteFunc(t.busy, func(b key) bool { return b == k })
			default:
				failed, first = failed+1, r.err
			}
		}
	}
	if failed > 0 {
		t.a.report.violate(where, fmt.Sprintf("%d requests failed, one with: %v", failed, first))
	}
	if excuses > 0 {
		t.a.report.doubt("%s: %d requests failed while the machine stood still (%v)", where, excuses, seen)
	}
}

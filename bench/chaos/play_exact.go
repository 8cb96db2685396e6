package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// playExact: many callers at once on one fresh key.
func playExact(ctx context.Context, a *arena, rounds int) error {
	const takes = 500
	var worst time.Duration
	for i := range rounds {
		where := fmt.Sprintf("round %d", i+1)
		k := a.fresh("exact")
		recs := a.volley(ctx, k, takes, takes, nil)
		if err := ctx.Err(); err != nil {
			return err
		}
		a.judgeExact(where, k, recs)
		for _, r := range recs {
			worst = max(worst, r.ret-r.call)
		}
		a.report.Rounds++
	}
	a.report.show("takes", "%d", rounds*takes)
	a.report.show("slowest take", "%v", worst.Round(100*time.Microsecond))
	return nil
}

// refillRate is the limit of the plan `refill`.
var refillRate = rate{perSecond: 10, burst: 100}

// playRefill empties a bucket of 10 a second and takes again a second later. On
// real clocks the bounds follow from the times that the caller saw pass.
func playRefill(ctx context.Context, a *arena, rounds int) error {
	for i := range rounds {
		where := fmt.Sprintf("round %d", i+1)
		k := a.fresh("refill")
		first := a.volley(ctx, k, 500, 500, nil)
		begin, empty := span(first)
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		second := a.volley(ctx, k, 50, 50, nil)
		again, end := span(second)
		a.judge(where, k, slices.Concat(first, second))

		n1, denied, failed1 := tally(first)
		n2, _, failed2 := tally(second)
		if failed1+failed2 > 0 {
			a.report.violate(where, fmt.Sprintf("%d takes failed", failed1+failed2))
			continue
		}
		if denied == 0 {
			a.report.doubt("%s: the bucket was never empty", where)
			continue
		}
		if most := refillRate.most(empty - begin); n1 < 100 || n1 > most {
			a.report.violate(where, fmt.Sprintf("admitted %d at once, want 100 … %d", n1, most))
		}
		if least := refillRate.least(again-empty, 0); n2 < least {
			a.report.violate(where, fmt.Sprintf("admitted %d after %v, want at least %d", n2, again-empty, least))
		}
		if most := refillRate.most(end - begin); n1+n2 > most {
			a.report.violate(where, fmt.Sprintf("admitted %d in %v, want at most %d", n1+n2, end-begin, most))
		}
		a.report.Rounds++
		a.report.show("admitted", "%d then %d after %v", n1, n2, (again - empty).Round(time.Millisecond))
	}
	return nil
}

// span returns the first call and the last return.
func span(recs []record) (begin, end time.Duration) {
	begin = recs[0].call
	for _, r := range recs {
		begin, end = min(begin, r.call), max(end, r.ret)
	}
	return begin, end
}

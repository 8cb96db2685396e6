package main

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// What is measured of a history, for the reports. Package check judges it.

// drift is how much faster or slower than the checker's clock a leader's may run.
const drift = 200e-6

// waitsOfMoves returns how long callers of one key waited that were under way when
// its slot changed its group: what they asked for was then decided by the new one.
func waitsOfMoves(recs []record) (waits []time.Duration, moves int) {
	decided := make([]record, 0, len(recs))
	for _, r := range recs {
		if r.err == nil {
			decided = append(decided, r)
		}
	}
	// Slot time runs on through a move, so it tells the true order.
	slices.SortStableFunc(decided, func(a, b record) int { return cmp.Compare(a.ans.SlotTime, b.ans.SlotTime) })
	for i := 1; i < len(decided); i++ {
		last, first := decided[i-1], decided[i]
		if last.ans.Group == first.ans.Group {
			continue
		}
		moves++
		for _, r := range decided[i:] {
			if r.ans.Group != first.ans.Group {
				break
			}
			if r.call <= first.ret {
				waits = append(waits, r.ret-r.call)
			}
		}
	}
	return waits, moves
}

// rate is a limit that refills: tokens per second up to burst.
type rate struct{ perSecond, burst float64 }

// most is the largest number of tokens that could be taken in a time, one more
// for the token that is just becoming whole.
func (r rate) most(d time.Duration) int {
	return int(math.Floor(r.burst + r.perSecond*d.Seconds()*(1+drift)))
}

// least is the smallest number of tokens that an empty bucket must have gained
// after a time of which lost did not count.
func (r rate) least(d, lost time.Duration) int {
	return int(math.Max(0, math.Floor(math.Min(r.burst, r.perSecond*(d-lost).Seconds()*(1-drift)))))
}

// tally counts admissions and failures.
func tally(recs []record) (admitted, denied, failed int) {
	for _, r := range recs {
		switch {
		case r.err != nil:
			failed++
		case r.ans.Allowed:
			admitted++
		default:
			denied++
		}
	}
	return admitted, denied, failed
}

// quantile returns the q-quantile (0 … 1) of durations, 0 of none.
func quantile(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

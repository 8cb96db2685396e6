package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// The checkers are pure: records in, broken promises out, each in one sentence.

// drift is how much faster or slower than the checker's clock a leader's may run.
const drift = 200e-6

// checkExact holds the strongest promise: of more unit takes than a bucket
// without refill has tokens, exactly budget are admitted and no call fails.
func checkExact(recs []record, budget int) (broken []string) {
	admitted, failed := 0, 0
	var first error
	for _, r := range recs {
		switch {
		case r.err != nil:
			if failed++; first == nil {
				first = r.err
			}
		case r.ans.allowed:
			admitted++
		}
	}
	if failed > 0 {
		broken = append(broken, fmt.Sprintf("%d of %d takes failed, the first with: %v", failed, len(recs), first))
	}
	if len(recs) >= budget && (admitted > budget || failed == 0 && admitted < budget) {
		broken = append(broken, fmt.Sprintf("admitted %d of %d takes, want exactly %d", admitted, len(recs), budget))
	}
	return append(broken, checkNoneDegraded(recs)...)
}

func checkNoneDegraded(recs []record) []string {
	for _, r := range recs {
		if r.err == nil && r.ans.degraded {
			return []string{"an answer was given without the cluster (degraded)"}
		}
	}
	return nil
}

// checkSpending replays the admissions of a bucket without refill in the order
// of their slot time: each must leave one token less than the one before. Two
// leaders that both admitted from one level would show here.
func checkSpending(recs []record, budget int) (broken []string) {
	var admitted []answer
	for _, r := range recs {
		if r.err == nil && r.ans.allowed {
			admitted = append(admitted, r.ans)
		}
	}
	slices.SortStableFunc(admitted, func(a, b answer) int {
		if a.slotTime != b.slotTime {
			return int(sign(a.slotTime - b.slotTime))
		}
		return int(sign(int64(b.remaining) - int64(a.remaining)))
	})
	for i, a := range admitted {
		if want := uint64(budget - 1 - i); i >= budget || a.remaining != want {
			return []string{fmt.Sprintf("admission %d in slot time (term %d, index %d) left %d tokens, want %d",
				i+1, a.term, a.index, a.remaining, budget-1-i)}
		}
	}
	return nil
}

func sign(d int64) int64 {
	switch {
	case d < 0:
		return -1
	case d > 0:
		return 1
	}
	return 0
}

// checkDenialIsFinal: once a bucket without refill has denied a unit take, no
// take that was called later may be admitted.
func checkDenialIsFinal(recs []record) []string {
	denied := time.Duration(math.MaxInt64)
	for _, r := range recs {
		if r.err == nil && !r.ans.allowed {
			denied = min(denied, r.ret)
		}
	}
	for _, r := range recs {
		if r.err == nil && r.ans.allowed && r.call > denied {
			return []string{fmt.Sprintf("a take called at %v was admitted, although the bucket had denied one by %v", r.call, denied)}
		}
	}
	return nil
}

// checkTerms: along a group's log the term never falls, and one index has one term.
func checkTerms(recs []record) []string {
	byGroup := map[uint32][]answer{}
	for _, r := range recs {
		if r.err == nil && !r.ans.uncommitted && r.ans.index > 0 {
			byGroup[r.ans.group] = append(byGroup[r.ans.group], r.ans)
		}
	}
	for group, answers := range byGroup {
		slices.SortFunc(answers, func(a, b answer) int {
			if a.index != b.index {
				return int(sign(int64(a.index) - int64(b.index)))
			}
			return int(sign(int64(a.term) - int64(b.term)))
		})
		for i := 1; i < len(answers); i++ {
			p, a := answers[i-1], answers[i]
			if a.term < p.term || a.index == p.index && a.term != p.term {
				return []string{fmt.Sprintf("group %d: index %d came from term %d, index %d from term %d",
					group, p.index, p.term, a.index, a.term)}
			}
		}
	}
	return nil
}

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
	slices.SortStableFunc(decided, func(a, b record) int { return int(sign(a.ans.slotTime - b.ans.slotTime)) })
	for i := 1; i < len(decided); i++ {
		last, first := decided[i-1], decided[i]
		if last.ans.group == first.ans.group {
			continue
		}
		moves++
		for _, r := range decided[i:] {
			if r.ans.group != first.ans.group {
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
		case r.ans.allowed:
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

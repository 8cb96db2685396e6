package check

import (
	"maps"
	"slices"
	"time"
)

// split sorts a history into buckets, in order of their names. Operations keep
// their order.
func split(ops []Op) (names []string, by map[string][]Op) {
	count := make(map[string]int)
	for i := range ops {
		count[ops[i].Bucket]++
	}
	delete(count, "")
	by = make(map[string][]Op, len(count))
	for b, n := range count {
		by[b] = make([]Op, 0, n)
	}
	for i := range ops {
		if b := ops[i].Bucket; b != "" {
			by[b] = append(by[b], ops[i])
		}
	}
	return slices.Sorted(maps.Keys(by)), by
}

// each lets judge see one bucket after the other.
func each(checker string, ops []Op, judge func(v *Verdict, bucket string, ops []Op)) Verdict {
	all := Verdict{Checker: checker}
	names, by := split(ops)
	for _, name := range names {
		v := Verdict{Checker: checker}
		judge(&v, name, by[name])
		all.add(v)
	}
	return all
}

// byCall returns ops in order of their calls, byReturn of their returns.
func byCall(ops []Op) []Op {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b Op) int { return compare(a.Call, b.Call) })
	return ops
}

func byReturn(ops []Op) []Op {
	ops = slices.Clone(ops)
	slices.SortStableFunc(ops, func(a, b Op) int { return compare(a.Return, b.Return) })
	return ops
}

func compare[T ~int64 | ~uint64 | ~int | ~uint32](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// frozen says whether a bucket cannot gain a token within its history: a token
// bucket that refills too slowly, with one limit, and nothing given on purpose.
func frozen(s *Setup, bucket string, ops []Op) (Limit, bool) {
	l, ok := s.steady(bucket)
	if !ok || s.given(bucket) || !l.Algorithm.HasBurst() {
		return l, false
	}
	return l, !refills(l, length(ops))
}

// length is the time from the first call to the last return that is known.
func length(ops []Op) time.Duration {
	first, last := Forever, time.Duration(0)
	for i := range ops {
		first = min(first, ops[i].Call)
		if ops[i].Return != Forever {
			last = max(last, ops[i].Return)
		}
	}
	return max(last-first, 0)
}

// logical names the logical request of an operation: copies share it.
func logical(o *Op, i int) any {
	if o.ID != "" {
		return o.ID
	}
	return i
}

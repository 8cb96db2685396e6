package bucket

import (
	"math"

	"pgregory.net/rapid"
)

// limits draws limits of all sizes, with the corners often.
func limits() *rapid.Generator[Limit] {
	return rapid.Custom(func(t *rapid.T) Limit {
		size := rapid.OneOf(rapid.Uint64Range(1, 50), rapid.Uint64Range(1, MaxAmount), rapid.SampledFrom([]uint64{1, MaxAmount}))
		window := rapid.OneOf(
			rapid.SampledFrom([]int64{MinWindow, sec, 60 * sec, 7 * ms, MaxWindow}),
			rapid.Int64Range(MinWindow, MaxWindow), rapid.Int64Range(MinWindow, 10*sec))
		return per(size.Draw(t, "amount"), window.Draw(t, "window"), size.Draw(t, "burst"))
	})
}

// anyLimits draws limits of all algorithms. Windows are 1 ms … 30 days, so that
// no time here reaches its end.
func anyLimits() *rapid.Generator[Limit] {
	return rapid.Custom(func(t *rapid.T) Limit {
		l := limits().Draw(t, "limit")
		l.Algorithm = Algorithm(rapid.IntRange(int(TokenBucket), int(Concurrency)).Draw(t, "algorithm"))
		l.Window = min(l.Window, 30*24*3600*sec)
		if !l.Algorithm.HasBurst() {
			l.Burst = l.Amount
		}
		return l
	})
}

// all is one limit per algorithm.
func all(amount uint64, window int64) []Limit {
	var list []Limit
	for a := TokenBucket; a <= Concurrency; a++ {
		list = append(list, Limit{Algorithm: a, Amount: amount, Burst: amount, Window: window})
	}
	return list
}

// steps draws how far time moves: mostly what matters to l, at times nothing, back, or wild.
func steps(l Limit) *rapid.Generator[int64] {
	token := max(1, l.Window/int64(max(l.Amount, 1)))
	fill := int64(min(uint64(math.MaxInt64/4), uint64(token)*min(l.Burst, 1<<20)))
	return rapid.OneOf(
		rapid.Int64Range(0, 3), rapid.Int64Range(0, 2*token+2), rapid.Int64Range(0, fill/3+2),
		rapid.Int64Range(0, 2*fill+2), rapid.Int64Range(-token, 0), rapid.Int64Range(0, l.Window), rapid.Int64Range(l.Window-1, l.Window+1),
		rapid.Int64Range(0, 2*l.Window), rapid.SampledFrom([]int64{0, math.MaxInt64 / 2}))
}

// costs draws costs that matter to l.
func costs(l Limit) *rapid.Generator[uint64] {
	return rapid.OneOf(
		rapid.Uint64Range(0, 3), rapid.Uint64Range(0, l.Burst+1), rapid.Uint64Range(0, l.Burst/4+1),
		rapid.SampledFrom([]uint64{l.Burst, MaxAmount, math.MaxUint64}))
}

// later adds a step to a time without wrapping.
func later(now, step int64) int64 {
	if step > 0 && now > math.MaxInt64-step {
		return math.MaxInt64
	}
	return now + step
}

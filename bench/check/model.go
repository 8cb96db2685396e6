package check

import (
	"fmt"
	"math/big"

	"github.com/ringlimit/ringlimit/bucket"
)

// model is a bucket as the contract describes it, in whole numbers without bound. It
// shares no arithmetic with the product. As answers without an outcome may have been
// charged at any time, what it knows may be a range: the answers narrow it. With
// nothing unknown it is exact to the nanosecond.
type model interface {
	// advance lets slot time become now.
	advance(now int64)
	// widen allows that tokens were taken, or given back, since the last answer.
	widen(taken, given uint64)
	// judge compares the numbers of o with what the bucket holds, charges it if it
	// was charged, and learns from it. wrong says what cannot be; taken and given are
	// how many of the tokens that widen allowed must have been.
	judge(o *Op) (wrong string, taken, given uint64)
	clone() model
	// exact says whether the model can tell nothing once an outcome is unknown.
	exact() bool
}

// newModel is a fresh bucket at slot time now; nil: an algorithm that is not
// modelled.
func newModel(l Limit, now int64) model {
	switch l.Algorithm {
	case bucket.TokenBucket, bucket.LeakyBucket:
		return newFlow(l, now)
	case bucket.FixedWindow:
		return newFixed(l, now)
	case bucket.SlidingWindow:
		return newSliding(l, now)
	case bucket.SlidingLog:
		return newLog(l, now)
	}
	return nil
}

// span is what a number is known to be within, both ends too.
type span struct{ low, high *big.Int }

func exactly(n *big.Int) span { return span{new(big.Int).Set(n), new(big.Int).Set(n)} }

func (s span) clone() span { return span{new(big.Int).Set(s.low), new(big.Int).Set(s.high)} }

func (s span) empty() bool { return s.low.Cmp(s.high) > 0 }

func (s span) known() bool { return s.low.Cmp(s.high) == 0 }

// atLeast and atMost narrow s.
func (s *span) atLeast(n *big.Int) {
	if s.low.Cmp(n) < 0 {
		s.low.Set(n)
	}
}

func (s *span) atMost(n *big.Int) {
	if s.high.Cmp(n) > 0 {
		s.high.Set(n)
	}
}

// add moves s.
func (s *span) add(n *big.Int) { s.low.Add(s.low, n); s.high.Add(s.high, n) }

// clamp keeps s within least and most.
func (s *span) clamp(least, most *big.Int) {
	for _, n := range []*big.Int{s.low, s.high} {
		if n.Cmp(least) < 0 {
			n.Set(least)
		} else if n.Cmp(most) > 0 {
			n.Set(most)
		}
	}
}

func whole(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

// times is a × b.
func times(a uint64, b int64) *big.Int { return new(big.Int).Mul(whole(a), big.NewInt(b)) }

// ceil is a / b rounded up; b > 0.
func ceil(a, b *big.Int) *big.Int {
	q := new(big.Int).Neg(a)
	return q.Div(q, b).Neg(q)
}

// floor is a / b rounded down; b > 0.
func floor(a, b *big.Int) *big.Int { return new(big.Int).Div(a, b) }

// need is what has to be left for o to pass.
func need(o *Op) uint64 { return max(o.Cost, 1) }

// certain judges what does not depend on the state of a bucket; done if all is said.
func certain(l Limit, o *Op) (wrong string, done bool) {
	have := capacity(l)
	switch {
	case o.Capacity != have:
		return fmt.Sprintf("answered a limit of %d, it is %d", o.Capacity, have), true
	case need(o) <= have:
		return "", false
	case o.Passed:
		return fmt.Sprintf("passed with a cost of %d on a capacity of %d", o.Cost, have), true
	case o.RetryAfter != Never:
		return fmt.Sprintf("a cost of %d on a capacity of %d can never pass, and the answer says after %v", o.Cost, have, o.RetryAfter), true
	}
	return "", false
}

package check

import (
	"fmt"
	"math/big"
	"time"
)

// sliding is a sliding window: the counts of this window and of the one before, of
// which the part still in view counts, rounded down.
type sliding struct {
	limit     Limit
	edges     edges
	prev, cur uint64
}

func newSliding(l Limit, now int64) *sliding {
	return &sliding{limit: l, edges: edges{window: l.Window, now: now}}
}

func (s *sliding) clone() model { c := *s; return &c }

func (s *sliding) exact() bool { return true }

func (s *sliding) widen(uint64, uint64) {}

func (s *sliding) advance(now int64) {
	switch s.edges.advance(now) {
	case 0:
	case 1:
		s.prev, s.cur = s.cur, 0
	default:
		s.prev, s.cur = 0, 0
	}
}

// usedAt is the estimate at a time from now within this window, or in the next.
func (s *sliding) usedAt(ns int64) uint64 {
	at := s.edges.now - s.edges.start + ns
	prev, cur := s.prev, s.cur
	if at >= s.limit.Window {
		at, prev, cur = at-s.limit.Window, cur, 0
	}
	if at >= s.limit.Window {
		return 0
	}
	seen := floor(times(prev, s.limit.Window-at), big.NewInt(s.limit.Window))
	return seen.Uint64() + cur
}

func (s *sliding) judge(o *Op) (wrong string, _, _ uint64) {
	wrong, done := certain(s.limit, o)
	if done {
		return wrong, 0, 0
	}
	used := s.cur
	if s.edges.known {
		used = s.usedAt(0)
	}
	left := s.limit.Amount - min(used, s.limit.Amount)
	if passes := need(o) <= left; passes != o.Passed {
		return fmt.Sprintf("passed: %v, with %d left before it", o.Passed, left), 0, 0
	}
	if o.charged() {
		s.cur += o.Cost
		used += o.Cost
		left -= o.Cost
	}
	switch {
	case o.Remaining != left:
		return fmt.Sprintf("%d left, must be %d", o.Remaining, left), 0, 0
	case used == 0 && o.ResetAfter == 0:
		return "", 0, 0
	case !s.edges.known && !s.edges.learn(int64(o.ResetAfter)-s.fadesTo0(s.cur)):
		return fmt.Sprintf("reset after %v with a count of %d in a window of %v", o.ResetAfter, s.cur, time.Duration(s.limit.Window)), 0, 0
	case !s.least(int64(o.ResetAfter), 0):
		return fmt.Sprintf("reset after %v, which is not when the estimate becomes 0", o.ResetAfter), 0, 0
	case !o.Passed && o.RetryAfter != Never && !s.least(int64(o.RetryAfter), s.limit.Amount-need(o)):
		return fmt.Sprintf("retry after %v, which is not when %d pass", o.RetryAfter, need(o)), 0, 0
	}
	return "", 0, 0
}

// fadesTo0 is how far into the next window a count of n is seen at all: as long as n
// × (window − at) is a whole window.
func (s *sliding) fadesTo0(n uint64) int64 {
	if n == 0 {
		return 0
	}
	seen := ceil(big.NewInt(s.limit.Window), whole(n)) // the least part in view that counts as 1
	return s.limit.Window - seen.Int64() + 1
}

// least says whether ns is the first moment at which the estimate is at most most.
func (s *sliding) least(ns int64, most uint64) bool {
	return s.usedAt(ns) <= most && (ns == 0 || s.usedAt(ns-1) > most)
}

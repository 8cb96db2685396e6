package check

import (
	"fmt"
	"math/big"
	"time"
)

// edges is where the windows of a key lie, which its answers tell: the phase is
// derived from a secret of the cluster.
type edges struct {
	window int64
	known  bool
	odd    bool  // the first window may end elsewhere: it began with a loss or a change
	start  int64 // of the window that now is in
	now    int64
}

// advance returns how many windows were left behind.
func (e *edges) advance(now int64) (windows int64) {
	if now <= e.now {
		return 0
	}
	e.now = now
	if !e.known {
		return 0
	}
	windows = (now - e.start) / e.window
	e.start += windows * e.window
	if windows > 0 && e.odd {
		e.known, e.odd = false, false
	}
	return windows
}

// end is when the present window ends, from now.
func (e *edges) end() int64 { return e.window - (e.now - e.start) }

// learn takes the end of the present window from an answer; false: it contradicts
// what is known.
func (e *edges) learn(end int64) bool {
	if e.known {
		return end == e.end()
	}
	e.known, e.start = end > 0 && end <= e.window, e.now+end-e.window
	return e.known
}

// fixed is a fixed window: the count of one window.
type fixed struct {
	limit Limit
	edges edges
	count span
	most  *big.Int // the amount, or what a larger limit before had admitted
	sure  *span    // the count if nothing hidden had happened; nil: as it is
}

func newFixed(l Limit, now int64) *fixed {
	return &fixed{limit: l, edges: edges{window: l.Window, now: now}, count: exactly(new(big.Int)), most: whole(l.Amount)}
}

func (f *fixed) clone() model { c := *f; c.count = f.count.clone(); return &c }

func (f *fixed) exact() bool { return false }

func (f *fixed) advance(now int64) {
	if f.edges.advance(now) > 0 {
		f.count = exactly(new(big.Int))
	}
}

func (f *fixed) widen(taken, given uint64) {
	sure := f.count.clone()
	f.sure = &sure
	f.count.high.Add(f.count.high, whole(taken))
	f.count.low.Sub(f.count.low, whole(given))
	f.count.clamp(new(big.Int), f.most)
}

func (f *fixed) judge(o *Op) (wrong string, taken, given uint64) {
	wrong, done := certain(f.limit, o)
	if done {
		return wrong, 0, 0
	}
	was := f.count.clone()
	sure := was.clone()
	if f.sure != nil {
		sure, f.sure = *f.sure, nil
	}
	used := new(big.Int).Sub(whole(f.limit.Amount), whole(o.Remaining))
	cost := uint64(0)
	if o.charged() {
		cost = o.Cost
		f.count.add(whole(cost))
		sure.add(whole(cost))
	}
	f.count.atLeast(used)
	if o.Remaining > 0 || cost > 0 {
		f.count.atMost(used) // else it may be more, from a larger limit before
	}
	if o.ResetAfter == 0 {
		f.count.atMost(new(big.Int))
	} else {
		f.count.atLeast(whole(1))
	}
	left := o.Remaining + cost // before the charge
	switch {
	case f.count.empty():
		return fmt.Sprintf("%d left, reset after %v; the count before it was %v to %v of %d", o.Remaining, o.ResetAfter, was.low, was.high, f.limit.Amount), 0, 0
	case o.Passed != (need(o) <= left):
		return fmt.Sprintf("passed: %v, with %d left before it", o.Passed, left), 0, 0
	case o.ResetAfter > 0 && !f.edges.learn(int64(o.ResetAfter)):
		return fmt.Sprintf("reset after %v, the window ends in %v", o.ResetAfter, time.Duration(f.edges.end())), 0, 0
	case !o.Passed && o.RetryAfter != Never && int64(o.RetryAfter) != f.edges.end():
		return fmt.Sprintf("retry after %v, the window ends in %v", o.RetryAfter, time.Duration(f.edges.end())), 0, 0
	}
	return "", excess(f.count.low, sure.high), excess(sure.low, f.count.high)
}

// excess is a − b, or 0.
func excess(a, b *big.Int) uint64 {
	d := new(big.Int).Sub(a, b)
	if d.Sign() <= 0 {
		return 0
	}
	return d.Uint64()
}

package main

import (
	"context"
	"time"
)

// key names one bucket: the tenant it counts, and the plan that picks its limit.
type key struct{ tenant, plan string }

// answer is what the checkers need to know of a decision.
type answer struct {
	allowed     bool
	remaining   uint64
	slotTime    int64 // ns, at which it was decided first
	group       uint32
	term, index uint64
	uncommitted bool
	degraded    bool
}

// record is one take as its caller saw it. Times are since the arena began.
type record struct {
	call, ret time.Duration
	ans       answer
	err       error
}

// caller takes tokens, retrying with one id until ctx ends.
type caller interface {
	take(ctx context.Context, k key, cost int64) (answer, error)
	close()
}

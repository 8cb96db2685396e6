package main

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// key names one bucket: the tenant it counts, and the plan that picks its limit.
type key struct{ tenant, plan string }

// record is one take as its caller saw it. Times are since the arena began.
type record struct {
	call, ret time.Duration
	ans       client.Decision // with its witness
	err       error
}

// caller takes tokens, retrying with one id until ctx ends; of 0 tokens it looks.
type caller interface {
	take(ctx context.Context, k key, cost int64) (client.Decision, error)
	close()
}

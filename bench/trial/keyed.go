package trial

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
)

const (
	perKeyed    = 80                // logical requests to one key of 60 tokens: it ends spent
	patientlyIn = 100 * time.Second // within the horizon of an id, two minutes
)

// keyed retries each take under its own id until it has an answer, with copies at
// the same time and out of order: of such a key exactly the budget is admitted,
// if what it had taken is not lost. The two plans differ in what a loss gives.
func (l *load) keyed() {
	for _, plan := range []string{"keyed", "keyed-full"} {
		keys := &rotating{l: l, plan: plan, most: perKeyed}
		for range 3 {
			c := l.caller(plan, "")
			l.every(40*time.Millisecond, func(int) { c.insist(l.whole, l, keys.next()) })
		}
		// What the last key has not seen yet comes at the end.
		l.finish = append(l.finish, func(ctx context.Context) {
			c := l.caller(plan, "")
			for used := keys.used; used < perKeyed && used > 0; used++ {
				c.insist(ctx, l, keys.tenant)
			}
		})
	}
}

// insist asks for one token until there is an answer. Not all is as in a retry loop
// of an application: some copies overtake each other.
func (c *caller) insist(ctx context.Context, l *load, tenant string) {
	own := l.on(c, tenant)
	id := fmt.Sprintf("%s-%d", c.run, c.fresh())
	o := check.Op{Kind: check.Take, Cost: 1, ID: id, Body: "1"}
	r := client.Request{RequestID: id}
	l.s.history.mu.Lock()
	l.s.exactly(own.names[own.plan])
	l.s.history.mu.Unlock()
	var copies sync.WaitGroup
	for end := own.now() + patientlyIn; own.now() < end && ctx.Err() == nil; {
		if rand.IntN(3) == 0 {
			copies.Go(func() {
				waitFor(ctx, rand.N(100*time.Millisecond))
				_, _ = own.ask(ctx, o, r, attempt)
			})
		}
		if _, err := own.ask(ctx, o, r, attempt); err == nil {
			break
		}
		waitFor(ctx, rand.N(100*time.Millisecond))
	}
	copies.Wait()
}

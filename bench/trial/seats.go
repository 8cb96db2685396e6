package trial

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/report"
	"github.com/ringlimit/ringlimit/client"
)

// patience is for what is done to a permit.
const patience = 2 * time.Second

// seats holds permits of a concurrency limit: acquires, renews and releases them, or
// lets them run out.
func (l *load) seats() {
	tenant := l.tenant("seats")
	for range 6 {
		c := l.caller("seats", tenant)
		l.every(100*time.Millisecond, func(int) {
			ctx := l.whole
			d, err := c.ask(ctx, check.Op{Kind: check.Acquire, Cost: 1}, client.Request{}, attempt)
			if err != nil || !d.Allowed || d.PermitID == "" {
				return
			}
			waitFor(l.ctx, rand.N(300*time.Millisecond))
			if rand.IntN(3) == 0 {
				c.permit(ctx, check.Renew, d.PermitID)
			}
			if rand.IntN(10) > 0 {
				c.permit(ctx, check.Release, d.PermitID)
			}
		})
	}
}

// permit renews or releases, and notes it.
func (c *caller) permit(ctx context.Context, kind check.Kind, permit string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	o := check.Op{Client: c.number, Request: c.fresh(), Kind: kind, Cost: 1, Permit: permit, Bucket: c.names["seats"], Call: c.now()}
	r := client.Request{Tenant: c.tenant, Plan: c.plan}
	var held bool
	var err error
	if kind == check.Renew {
		_, held, err = c.client.Renew(ctx, r, permit)
	} else {
		held, err = c.client.Release(ctx, r, permit)
	}
	o.Return = c.now()
	q := report.Request{Call: o.Call, Return: o.Return, Answered: err == nil, Plan: c.plan}
	if err != nil {
		o = check.Failed(o, err)
	} else {
		o = check.Held(o, held, sentOnce)
	}
	c.note([]check.Op{o}, q)
}

// sentOnce is what a call took at most that the client sent once: before it sends a
// copy of one that a node may have done, it waits for longer.
const sentOnce = 10 * time.Millisecond

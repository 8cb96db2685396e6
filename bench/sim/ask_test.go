package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
)

func (k *work) id() string { return fmt.Sprint("id", k.number.Add(1)) }

// take asks once, as long as one attempt may take.
func (k *work) take(c int, q client.Request, timeout time.Duration) check.Outcome {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	o := k.op(c, &q)
	d, err := k.clients[c].Decide(ctx, q)
	return k.answer(o, &q, &d, err)
}

// stale is a look that may tell of the past; only its code is judged.
func (k *work) stale(c int, q client.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), attempt)
	defer cancel()
	if _, err := k.clients[c].Decide(ctx, q); err != nil {
		k.answer(k.op(c, &q), &q, nil, err)
	}
}

// retried asks under its id until there is an answer.
func (k *work) retried(c int, q client.Request, r *rand.Rand) (o check.Outcome) {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if o = k.take(c, q, attempt); o == check.Admitted || o == check.Denied {
			break
		}
		time.Sleep(time.Duration(r.Int64N(int64(attempt))))
	}
	return o
}

// op is what is known of a request before its answer. It asks for the witness too.
func (k *work) op(c int, q *client.Request) check.Op {
	q.Witness = true
	o := check.Op{Client: c, Request: k.number.Add(1), ID: q.RequestID, Cost: uint64(max(1, q.Cost)), Call: k.w.now()}
	if q.Look {
		o.Kind, o.Cost = check.Look, 0
	}
	if q.Plan == "permits" {
		o.Kind = check.Acquire
	}
	o.Body = fmt.Sprint(q.Tenant, q.Region, q.Plan, o.Cost)
	return o
}

// answer puts an answer into the history.
func (k *work) answer(o check.Op, q *client.Request, d *client.Decision, err error) check.Outcome {
	o.Return = k.w.now()
	names := check.Names{q.Plan: q.Plan + "/" + q.Tenant}
	if q.Plan == "pair" {
		names = check.Names{"pair-tenant": "pair-tenant/" + q.Tenant, "pair-region": "pair-region/" + q.Region}
	}
	ops := check.Answered(o, d, err, names)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ops = append(k.ops, ops...)
	return ops[0].Outcome
}

// hold gets a permit, and renews it, releases it, or dies with it.
func (k *work) hold(c int, r *rand.Rand) {
	q := client.Request{Tenant: "permits", Plan: "permits"}
	ctx, cancel := context.WithTimeout(context.Background(), attempt)
	o := k.op(c, &q)
	d, err := k.clients[c].Decide(ctx, q)
	cancel()
	if k.answer(o, &q, &d, err) != check.Admitted || r.IntN(6) == 0 {
		return
	}
	time.Sleep(time.Duration(r.Int64N(int64(time.Second))))
	if r.IntN(3) == 0 {
		k.later(c, q, d.PermitID, check.Renew)
		time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
	}
	k.later(c, q, d.PermitID, check.Release)
}

// pauseBetweenCopies is less than a client waits before it sends a call again whose first
// copy a node may have done.
const pauseBetweenCopies = 10 * time.Millisecond

// later renews or releases a permit.
func (k *work) later(c int, q client.Request, permit string, kind check.Kind) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*attempt)
	defer cancel()
	o := check.Op{Client: c, Kind: kind, Bucket: "permits/permits", Cost: 1, Permit: permit, Call: k.w.now()}
	var held bool
	var err error
	if kind == check.Renew {
		_, held, err = k.clients[c].Renew(ctx, q, permit)
	} else {
		held, err = k.clients[c].Release(ctx, q, permit)
	}
	o.Return = k.w.now()
	if err != nil {
		o = check.Failed(o, err)
	} else {
		o = check.Held(o, held, 2*k.w.plan.far[c]+pauseBetweenCopies)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ops = append(k.ops, o)
}

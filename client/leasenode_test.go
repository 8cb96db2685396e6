package client

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
)

// leaseTTL is what nodes of these tests grant.
const leaseTTL = time.Second

// leasedBucket is a group with one bucket of a leased policy p, as package bucket has it,
// on the bubble's time.
type leasedBucket struct {
	t     *testing.T
	limit bucket.Limit
	start time.Time

	mu       sync.Mutex // guards the rest
	table    *bucket.Table
	builder  bucket.Builder
	index    uint64
	share    uint64              // of what is left, that one lease may have
	askDelay time.Duration       // from granting a lease to answering
	asks     []*pb.DecideRequest // for leases, copies too
	strict   int                 // requests decided without one
	returned []*pb.RefundRequest
	refuse   func(r *pb.DecideRequest) error
}

func (b *leasedBucket) answer(_ context.Context, m *pb.StreamRequest) []*pb.Result {
	delay := time.Duration(0)
	results := each(m, func(r *pb.DecideRequest) *pb.Result {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.refuse != nil {
			if err := b.refuse(r); err != nil {
				return failure(err)
			}
		}
		if r.Lease != nil {
			b.asks = append(b.asks, r)
			delay = b.askDelay
		} else {
			b.strict++
		}
		return b.decide(r, m)
	})
	time.Sleep(delay)
	return results
}

// decide is what a node does; mu is held.
func (b *leasedBucket) decide(r *pb.DecideRequest, m *pb.StreamRequest) *pb.Result {
	q := bucket.Request{ID: bucket.ID{Kind: bucket.ClientID, Session: r.Sent.GetSession(), Sequence: r.Sent.GetSequence(), Acked: m.Acked}}
	if r.Sent.GetSession() == 0 {
		q.ID.Session = m.Session
	}
	if r.Sent.GetSequence() == 0 {
		q.ID = bucket.ID{}
	}
	cost := uint64(1)
	if r.Cost != nil {
		cost = uint64(r.GetCost())
	}
	q.Takes = []bucket.Take{{Key: bucket.Key{Hi: 1, Lo: 1}, Rule: bucket.Rule{Policy: 1, Version: 1, Limit: b.limit}, Cost: cost}}
	if r.Lease != nil {
		q.Op, q.Amount, q.Share, q.ID.Acked = bucket.OpLease, r.Lease.Units, b.share, r.Lease.Acked
	}
	code, a := b.apply(q)
	if code == bucket.TooOld {
		return failure(fault.New(fault.TooOld, "too old"))
	}
	d := &pb.Decision{
		Allowed: a.Allowed, Limit: a.Capacity, Remaining: a.Remaining, ResetAfterNs: a.ResetAfter, RetryAfterNs: a.RetryAfter,
		PolicyId: "p", PolicyVersion: 1, Leased: true,
	}
	if !a.Allowed {
		d.Reason = "rate_limited"
	} else if a.Units > 0 {
		d.Lease = &pb.Lease{Units: a.Units, TtlNs: int64(leaseTTL), UnitCost: a.UnitCost}
	}
	return &pb.Result{Decision: d}
}

// giveBack is the node's Refund.
func (b *leasedBucket) giveBack(r *pb.RefundRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.returned = append(b.returned, r)
	b.apply(bucket.Request{Op: bucket.OpRefund, Amount: uint64(r.Cost), ID: bucket.ID{
		Kind: bucket.ClientID, Session: r.Lease.GetSession(), Sequence: r.Lease.GetSequence(), AgeNanos: r.Lease.GetAgeNs(),
	}})
}

// remaining is what the bucket holds.
func (b *leasedBucket) remaining() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, a := b.apply(bucket.Request{Takes: []bucket.Take{{Key: bucket.Key{Hi: 1, Lo: 1}, Rule: bucket.Rule{Policy: 1, Version: 1, Limit: b.limit}}}})
	return a.Remaining
}

func (b *leasedBucket) apply(r bucket.Request) (bucket.Code, bucket.Answer) {
	var out bucket.Results
	b.builder.Reset()
	if !b.builder.Add(&r) {
		b.t.Error("a request does not fit")
	}
	b.index++
	if err := b.table.Apply(b.index, b.builder.Entry(int64(time.Since(b.start))), &out); err != nil {
		b.t.Error(err)
	}
	if len(out.Answers) == 0 {
		return out.Items[0].Code, bucket.Answer{}
	}
	return out.Items[0].Code, out.Answers[0]
}

// told returns the leases asked for, and how much else.
func (b *leasedBucket) told() (asks []*pb.DecideRequest, strict int, returned []*pb.RefundRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(asks, b.asks...), b.strict, append(returned, b.returned...)
}

func tokens(amount, burst uint64, window time.Duration) bucket.Limit {
	return bucket.Limit{Algorithm: bucket.TokenBucket, Amount: amount, Burst: burst, Window: int64(window)}
}

// leaseBubble runs a test of n clients against nodes that share one leased bucket; the
// first leads.
func leaseBubble(t *testing.T, limit bucket.Limit, addrs []string, n int, test func(t *testing.T, f *fakeCluster, b *leasedBucket, clients []*Client)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, addrs...)
		b := &leasedBucket{t: t, limit: limit, start: time.Now(), table: bucket.NewTable(1), index: 1, share: 1}
		if err := b.table.Apply(1, bucket.HoldEntry(0, []uint16{0}), nil); err != nil {
			t.Fatal(err)
		}
		for _, node := range f.nodes {
			node.answer(b.answer)
			node.later.refund = b.giveBack
		}
		clients := make([]*Client, n)
		for i := range clients {
			clients[i] = f.client()
		}
		defer f.stop()
		defer func() {
			for _, c := range clients {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		}()
		synctest.Wait()
		test(t, f, b, clients)
	})
}

// call asks for acme once every pause, n times, and returns how many answers came from a
// lease. All must be allowed.
func callOften(t *testing.T, c *Client, n int, pause time.Duration) (leased int) {
	t.Helper()
	for range n {
		d, err := c.Decide(t.Context(), acme)
		if err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		if d.Leased {
			leased++
		}
		time.Sleep(pause)
	}
	return leased
}

// admissions are what callers were allowed, for the bound.
type admissions struct {
	mu    sync.Mutex // guards the rest
	start time.Time
	at    []time.Duration
	costs []int64
}

func (a *admissions) add(cost int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.at, a.costs = append(a.at, time.Since(a.start)), append(a.costs, cost)
}

// check holds every interval between two admissions to burst + rate × (time + ttl).
func (a *admissions) check(t *testing.T, l bucket.Limit) (total int64) {
	t.Helper()
	for i := range a.at {
		sum := int64(0)
		for k := i; k < len(a.at); k++ {
			sum += a.costs[k]
			if k+1 < len(a.at) && a.at[k+1] == a.at[k] {
				continue
			}
			if (sum-int64(l.Burst))*l.Window > int64(l.Amount)*int64(a.at[k]-a.at[i]+leaseTTL) { // all far from 2^63
				t.Fatalf("%d admitted from %v to %v: more than %d and %d per %v", sum, a.at[i], a.at[k], l.Burst, l.Amount, time.Duration(l.Window))
			}
		}
		total += a.costs[i]
	}
	return total
}

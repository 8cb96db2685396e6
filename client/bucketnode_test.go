package client

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
)

// oneBucket decides as a group does that holds one bucket, of the policy p: by the tables of
// package bucket, on the bubble's time.
type oneBucket struct {
	t     *testing.T
	limit bucket.Limit
	start time.Time

	mu      sync.Mutex // guards the rest
	table   *bucket.Table
	builder bucket.Builder
	index   uint64
	asked   []time.Time // each request
	passed  []time.Time // each that was admitted
}

func newBucket(t *testing.T, limit bucket.Limit) *oneBucket {
	b := &oneBucket{t: t, limit: limit, start: time.Now(), table: bucket.NewTable(1), index: 1}
	if err := b.table.Apply(1, bucket.HoldEntry(0, []uint16{0}), nil); err != nil {
		t.Fatal(err)
	}
	return b
}

// answer is the script of a node that leads the group.
func (b *oneBucket) answer(_ context.Context, m *pb.StreamRequest) []*pb.Result {
	return each(m, func(r *pb.DecideRequest) *pb.Result { return &pb.Result{Decision: b.decide(r)} })
}

func (b *oneBucket) decide(r *pb.DecideRequest) *pb.Decision {
	cost := uint64(1)
	if r.Cost != nil {
		cost = uint64(r.GetCost())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, time.Now())
	a := b.apply(bucket.Request{Takes: []bucket.Take{{
		Key: bucket.Key{Hi: 1, Lo: 1}, Rule: bucket.Rule{Policy: 1, Version: 1, Limit: b.limit}, Cost: cost,
	}}})
	d := &pb.Decision{
		Allowed: a.Allowed, Limit: a.Capacity, Remaining: a.Remaining, ResetAfterNs: a.ResetAfter, RetryAfterNs: a.RetryAfter,
		DelayNs: a.Delay, PolicyId: "p", PolicyVersion: 1,
	}
	switch {
	case a.Reason == bucket.ReasonRateLimited:
		d.Reason = "rate_limited"
	case !a.Allowed:
		d.Reason = "cost_exceeds_capacity"
	default:
		b.passed = append(b.passed, time.Now())
	}
	if a.PermitID != 0 {
		d.PermitId = strconv.FormatUint(a.PermitID, 10)
	}
	return d
}

func (b *oneBucket) apply(r bucket.Request) bucket.Answer {
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
		b.t.Errorf("no answer to %+v", r)
		return bucket.Answer{}
	}
	return out.Answers[0]
}

// seen returns when it was asked, and when it admitted.
func (b *oneBucket) seen() (asked, passed []time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]time.Time(nil), b.asked...), append([]time.Time(nil), b.passed...)
}

// limits are one of each algorithm that a wait can cure, each with 5 tokens.
var limits = []bucket.Limit{
	{Algorithm: bucket.TokenBucket, Amount: 7, Burst: 5, Window: int64(3 * time.Second)},
	{Algorithm: bucket.LeakyBucket, Amount: 7, Burst: 5, Window: int64(3 * time.Second)},
	{Algorithm: bucket.FixedWindow, Amount: 5, Window: int64(3 * time.Second)},
	{Algorithm: bucket.SlidingWindow, Amount: 5, Window: int64(3 * time.Second)},
	{Algorithm: bucket.SlidingLog, Amount: 5, Window: int64(3 * time.Second)},
	{Algorithm: bucket.Concurrency, Amount: 5, Window: int64(3 * time.Second)},
}

// bucketBubble runs a test against a node that leads one bucket.
func bucketBubble(t *testing.T, limit bucket.Limit, test func(t *testing.T, c *Client, b *oneBucket, n *fakeNode)) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		b := newBucket(t, limit)
		f.nodes["a"].answer(b.answer)
		test(t, c, b, f.nodes["a"])
	})
}

// refuseFirst answers the first n requests with an error, and then as the bucket does.
func (b *oneBucket) refuseFirst(n int, err error) func(context.Context, *pb.StreamRequest) []*pb.Result {
	var mu sync.Mutex
	return func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
		return each(m, func(r *pb.DecideRequest) *pb.Result {
			mu.Lock()
			defer mu.Unlock()
			if n--; n >= 0 {
				return &pb.Result{Error: fault.ToProto(err)}
			}
			return &pb.Result{Decision: b.decide(r)}
		})
	}
}

package envoy

import (
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// maxShared bounds the buckets of a share; beyond it new keys are not decided.
const maxShared = 65_536

// share is this node's part of all limits, for what the cluster does not decide in
// time and a policy wants decided locally: one of as many parts as there are nodes,
// rounded down, so that all of them are never more than the limit. Its buckets live in
// this process alone, and know nothing of those of the cluster.
type share struct {
	nodes func() int
	born  time.Time

	mu      sync.Mutex // guards the rest; held for one decision
	among   uint64     // how many nodes the table is for
	table   *bucket.Table
	entries uint64
	builder bucket.Builder
	results bucket.Results
}

// decide takes what the hits ask for from their shares, all of it or nothing. known is
// false if it cannot be told.
func (s *share) decide(hits []policy.Hit, now time.Time) (admitted, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begin(uint64(max(1, s.nodes()))) {
		return false, false
	}
	takes := make([]bucket.Take, len(hits))
	for i := range hits {
		h := &hits[i]
		h.Rule.Limit = part(h.Rule.Limit, s.among)
		takes[i] = bucket.Take{Slot: h.Slot, Key: h.Key, Rule: h.Rule, Cost: h.Cost}
	}
	s.builder.Reset()
	s.results.Reset()
	if !s.builder.Add(&bucket.Request{Takes: takes, NoNewBucket: s.table.Buckets() >= maxShared}) {
		return false, false
	}
	if !s.apply(s.builder.Entry(int64(now.Sub(s.born)))) {
		return false, false
	}
	code := s.results.Items[0].Code
	return code == bucket.Admitted, code == bucket.Admitted || code == bucket.Denied
}

// begin makes the table, and a new one where the number of nodes has changed. mu is
// held.
func (s *share) begin(nodes uint64) bool {
	if s.table != nil && s.among == nodes {
		return true
	}
	s.among, s.entries, s.table = nodes, 0, bucket.NewTable(1)
	return s.apply(bucket.HoldEntry(0, []uint16{0}))
}

func (s *share) apply(entry []byte) bool {
	s.entries++
	return s.table.Apply(s.entries, entry, &s.results) == nil
}

// part is one of n parts of a limit. What is too small to be divided is nothing.
func part(l bucket.Limit, n uint64) bucket.Limit {
	l.Amount, l.Burst = l.Amount/n, l.Burst/n
	if l.Amount == 0 || l.Burst == 0 {
		l.Amount, l.Burst = 0, 0
	}
	return l
}

// Package simulate tells what a set of policies would do to recorded traffic: it
// matches and decides as a cluster does, in one table whose time is that of the
// trace. Windows start at time 0, not shifted by the hash of each key, so that
// results can be worked out by hand.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/decision"
	"github.com/ringlimit/ringlimit/policy"
)

// slots is how many parts the table has; the results do not depend on it.
const slots = 64

// Outcome is what became of one request. It is valid until the next.
type Outcome struct {
	Allowed bool
	Reason  string           // of a request that no policy may deny; else that of the headline
	Limits  []decision.Limit // one per policy, in order of their ids
	Head    int              // the headline among them; -1: none
}

// Simulator decides one request after the other.
type Simulator struct {
	index   *policy.Index
	noMatch policy.Action
	table   *bucket.Table
	applied uint64

	builder bucket.Builder
	hits    []policy.Hit
	takes   []bucket.Take
	results bucket.Results
	outcome Outcome
}

// New returns a simulator of a valid set, all buckets fresh.
func New(set *policy.Set) (*Simulator, error) {
	index, err := policy.Compile(set, policy.Keys{Slots: slots})
	if err != nil {
		return nil, err
	}
	s := &Simulator{index: index, noMatch: set.NoMatch, table: bucket.NewTable(slots, bucket.WithPhaseZero())}
	all := make([]uint16, slots)
	for i := range all {
		all[i] = uint16(i)
	}
	s.applied++
	if err := s.table.Apply(s.applied, bucket.HoldEntry(0, all), nil); err != nil {
		return nil, fmt.Errorf("prepare the table: %w", err)
	}
	return s, nil
}

// Decide decides a valid request at a time in ns, which never decreases.
func (s *Simulator) Decide(now int64, r *policy.Request) (*Outcome, error) {
	o := &s.outcome
	*o = Outcome{Limits: o.Limits[:0], Head: -1}
	s.hits = s.index.Match(r, s.hits[:0])
	if !decision.Enforced(s.hits) {
		o.Allowed, o.Reason = s.noMatch == policy.Allow, decision.NoPolicy
		if !o.Allowed || len(s.hits) == 0 {
			return o, nil
		}
	}
	if err := s.take(now); err != nil {
		return nil, err
	}
	item := &s.results.Items[0]
	if item.Code != bucket.Admitted && item.Code != bucket.Denied {
		return nil, fmt.Errorf("the table answers with code %d", item.Code)
	}
	o.Limits = decision.Append(o.Limits, s.index, s.hits, s.results.Answers)
	if o.Head = decision.Headline(o.Limits); o.Head >= 0 {
		o.Allowed, o.Reason = item.Code == bucket.Admitted, o.Limits[o.Head].Reason
	}
	return o, nil
}

// take asks the buckets of all hits in one entry.
func (s *Simulator) take(now int64) error {
	s.takes = s.takes[:0]
	for i := range s.hits {
		s.takes = append(s.takes, decision.Take(&s.hits[i]))
	}
	s.builder.Reset()
	if !s.builder.Add(&bucket.Request{Home: s.takes[0].Slot, Takes: s.takes}) {
		return fmt.Errorf("%d policies apply to one request, want at most %d", len(s.takes), bucket.MaxRequestTakes)
	}
	s.results.Reset()
	s.applied++
	return s.table.Apply(s.applied, s.builder.Entry(now), &s.results)
}

// Run decides all events of a trace in order and hands each to add, until one of
// them fails or ctx ends.
func (s *Simulator) Run(ctx context.Context, t *Trace, add func(*Event, *Outcome) error) error {
	for {
		e, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		o, err := s.Decide(e.Time, &e.Request)
		if err != nil {
			return fmt.Errorf("%s: line %d: %w", t.file, t.number, err)
		}
		if err := add(e, o); err != nil {
			return err
		}
	}
}

// Buckets is the number of buckets that are kept.
func (s *Simulator) Buckets() int { return s.table.Buckets() }

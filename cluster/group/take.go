package group

import (
	"context"
	"errors"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

// Take decides reqs and fills out, which the caller may reuse. All of them are
// judged at one moment: in one entry, or, where Request allows it, in the applied
// state. Take may set NoNewBucket of a request; it keeps nothing of reqs or out.
//
// An error concerns the whole call. NotLeader, NoLeader, Busy, Unavailable and
// InvalidArgument (such as ErrTooBig: more than an entry holds) mean that nothing
// was charged, and so does Deadline: ctx ended before the takes were proposed.
// OutcomeUnknown means that they may have been or may still be. What became of
// the single requests is in out.Results.
func (r *Replica) Take(ctx context.Context, reqs []Request, out *Outcome) error {
	out.reset(len(reqs))
	if len(reqs) == 0 {
		return nil
	}
	if err := fits(reqs); err != nil {
		return err
	}
	if r.cfg.MaxBuckets > 0 || r.cfg.MaxPerHome > 0 {
		r.capBuckets(reqs)
	}
	if r.judgeAhead(reqs, out) == len(reqs) {
		r.metrics.Takes.Add(uint64(len(reqs)))
		out.Results, out.peeked = out.peeked, out.Results
		return nil
	}
	err := r.commitTakes(ctx, reqs, out)
	r.count(err)
	return err
}

// fits refuses what no entry could carry.
func fits(reqs []Request) error {
	if len(reqs) > bucket.MaxEntryRequests {
		return ErrTooBig
	}
	for i := range reqs {
		if n := len(reqs[i].Takes); n == 0 && (reqs[i].Op == bucket.OpTake || reqs[i].Op == bucket.OpLease) || n > bucket.MaxRequestTakes {
			return fault.New(fault.InvalidArgument, "request %d has %d takes, want 1 to %d", i, n, bucket.MaxRequestTakes)
		}
	}
	return nil
}

// capBuckets sets NoNewBucket where this group, or the home of a take, is at its cap.
func (r *Replica) capBuckets(reqs []Request) {
	full := r.cfg.MaxBuckets > 0 && r.fsm.view.load().buckets >= r.cfg.MaxBuckets
	if r.cfg.MaxPerHome > 0 && !full {
		r.fsm.mu.Lock()
		defer r.fsm.mu.Unlock()
	}
	for i := range reqs {
		reqs[i].NoNewBucket = full
		for k := range reqs[i].Takes {
			if t := &reqs[i].Takes[k]; !full && r.cfg.MaxPerHome > 0 && r.fsm.table.HomeBuckets(t.Slot, t.Key) >= r.cfg.MaxPerHome {
				reqs[i].NoNewBucket = true
			}
		}
	}
}

// judgeAhead answers what needs no commit, and returns how many requests that
// were: first attempts on buckets that were denied of late and still have nothing
// to give, or that need a bucket there is no room for, and looks that may be stale.
func (r *Replica) judgeAhead(reqs []Request, out *Outcome) (answered int) {
	locked := false
	f := r.fsm
	for i := range reqs {
		q := &reqs[i]
		deniable := q.deniable()
		if !q.staleLook() && (!deniable || !q.NoNewBucket && !r.suspects.any(q.Takes)) {
			continue
		}
		if !locked {
			if !r.servesNow() {
				return 0
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			locked = true
			out.Applied, out.Term, out.Time = f.index, r.lead.serving.Load(), max(r.lead.clock.Load().now(), f.table.Time())
			out.Index = out.Applied
		}
		if r.judge(q, deniable, out) {
			out.Uncommitted[i] = true
			answered++
		}
	}
	return answered
}

// judge looks at what q would get now, and keeps that answer if it may be given
// without a commit. The caller holds the table's lock.
func (r *Replica) judge(q *Request, deniable bool, out *Outcome) bool {
	items, answers := len(out.peeked.Items), len(out.peeked.Answers)
	r.fsm.table.Peek(out.Time, &q.Request, &out.peeked)
	switch code := out.peeked.Items[items].Code; {
	case code == bucket.Denied:
		r.metrics.DeniedUncommitted.Add(1)
		return true
	case code == bucket.StoreFull, !deniable && code == bucket.Admitted:
		return true
	case code == bucket.Admitted:
		r.suspects.clear(q.Takes)
	}
	out.peeked.Items, out.peeked.Answers = out.peeked.Items[:items], out.peeked.Answers[:answers]
	return false
}

// commitTakes decides by an entry what is not answered yet.
func (r *Replica) commitTakes(ctx context.Context, reqs []Request, out *Outcome) error {
	if ctx.Err() != nil {
		return errExpired
	}
	deadline, _ := ctx.Deadline()
	b, i, err := r.gather.add(reqs, out.Uncommitted, deadline)
	switch {
	case errors.Is(err, errClosed):
		return r.notLeading()
	case errors.Is(err, ErrTooBig):
		return err // comes again in parts, and is counted then
	}
	r.metrics.Takes.Add(uint64(len(reqs)))
	if err != nil {
		return err
	}
	defer b.release()
	select {
	case <-b.done:
	case <-ctx.Done():
		switch r.gather.leave(b, i) {
		case queued:
			return errExpired
		case proposed:
			return errLeft(ctx)
		}
	}
	if err := b.collect(i, reqs, out); err != nil {
		return err
	}
	r.suspects.learn(reqs, out)
	return nil
}

// count notes the error of a call.
func (r *Replica) count(err error) {
	switch {
	case err == nil:
	case errors.Is(err, fault.Busy):
		r.metrics.Busy.Add(1)
	case errors.Is(err, fault.Deadline):
		r.metrics.Expired.Add(1)
	case errors.Is(err, fault.OutcomeUnknown):
		r.metrics.OutcomeUnknown.Add(1)
	}
}

// countResults notes what an entry decided.
func (r *Replica) countResults(res *bucket.Results) {
	m := r.metrics
	var n [bucket.StoreFull + 1]uint64
	for i := range res.Items {
		n[min(res.Items[i].Code, bucket.StoreFull)]++
	}
	m.Admitted.Add(n[bucket.Admitted])
	m.Denied.Add(n[bucket.Denied])
	m.Repeated.Add(n[bucket.Repeated])
	m.Refused.Add(n[bucket.TooOld] + n[bucket.IDReused] + n[bucket.NotHeld] + n[bucket.StoreFull])
}

// countEntry notes a committed entry.
func (m *Metrics) countEntry(requests, bytes int, took time.Duration) {
	m.Entries.Add(1)
	m.EntryRequests.Add(uint64(requests))
	m.EntryBytes.Add(uint64(bytes))
	m.Commit.Observe(took)
}

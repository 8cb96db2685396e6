package group

import "github.com/ringlimit/ringlimit/bucket"

// Request is a bucket.Request and how it may be answered.
type Request struct {
	bucket.Request
	FirstAttempt bool // no copy was sent before: a denial needs no commit
	StaleOK      bool // a look that may be answered from the applied state
}

// Outcome is what a Take call got. Reuse it: its slices keep their memory.
type Outcome struct {
	Results     bucket.Results // one Item per request, in their order
	Uncommitted []bool         // per request: answered from the applied state, without a commit
	Index       uint64         // log index of the entry, or what was applied when nothing was committed
	Applied     uint64         // what was applied when the uncommitted ones were judged
	First       int            // place in the entry of the first request that was committed
	Term        uint64         // of the leader that answered
	Time        int64          // group time (ns) of the decision

	peeked bucket.Results // answers found by peeking, in the order of their requests
}

// reset makes o ready for n requests.
func (o *Outcome) reset(n int) {
	o.Results.Reset()
	o.peeked.Reset()
	o.Index, o.Applied, o.First, o.Term, o.Time = 0, 0, 0, 0, 0
	if cap(o.Uncommitted) < n {
		o.Uncommitted = make([]bool, n)
	}
	o.Uncommitted = o.Uncommitted[:n]
	clear(o.Uncommitted)
}

// deniable says whether r, if its buckets cannot afford it, may be denied
// without a commit: what is in flight can only lower them further.
func (r *Request) deniable() bool {
	if r.ID.Kind != bucket.ClientID || !r.FirstAttempt {
		return false
	}
	for i := range r.Takes {
		if r.Takes[i].Cost == 0 {
			return false
		}
	}
	return true
}

// staleLook says whether r only looks and may be answered from the applied state.
func (r *Request) staleLook() bool {
	if !r.StaleOK {
		return false
	}
	for i := range r.Takes {
		if r.Takes[i].Cost != 0 {
			return false
		}
	}
	return true
}

package client

import "time"

// Principal is who asks, in one of its roles: a user, an ip, an api_key, an
// oauth_token, a service, or another type of your own.
type Principal struct {
	Type string
	ID   string
}

// Request says who wants to do what, and how much of it. The attributes are
// what policies match and count by; leave out those you do not have.
type Request struct {
	Tenant     string
	Principals []Principal // at most 8
	Route      string      // METHOD:/path
	Plan       string
	Region     string
	Attributes map[string]string // at most 16

	// Cost is how many tokens to take, 1 … 10^9; 0 takes 1. It must be 0 with Look.
	Cost int64
	// Costs are what the request costs under single policies, by their ids, in
	// place of Cost: 0 … 10^9, at most 16, none with Look. One for a policy that
	// does not apply changes nothing.
	Costs map[string]int64
	// Look asks whether a cost of 1 would be admitted, and takes nothing.
	Look bool
	// StaleOK lets a look be answered from what the leader has applied, which
	// is cheaper and may be a moment old.
	StaleOK bool
	// RequestID is your own name for this request, such as an Idempotency-Key
	// of at most 64 bytes: within two minutes the same id is charged once, also
	// when other processes use it. Empty: the client makes an id, so that its
	// own retries are charged once.
	RequestID string
	// Witness asks for Answer.Witness, which tests use. It changes no decision.
	Witness bool
}

// Answer is what one policy says.
type Answer struct {
	Allowed       bool
	Limit         uint64        // the capacity
	Remaining     uint64        // the largest cost that would be admitted now
	ResetAfter    time.Duration // until the bucket is fresh
	RetryAfter    time.Duration // 0 when allowed; Never: no wait helps
	Delay         time.Duration // how long to hold the request, with leaky buckets
	PolicyID      string
	PolicyVersion uint64
	Reason        string // empty when allowed; rate_limited, cost_exceeds_capacity, …
	PermitID      string // of a concurrency limit, to Release or Renew it; empty: no permit was granted
	FencingToken  uint64 // of the permit; grows with every grant, so that what it guards can refuse older ones
	Shadow        bool   // the policy counts and never denies

	Witness *Witness // if Request.Witness; nil in Limits: that of the Decision
}

// Witness says where in the log of which group an answer was made, so that a test can
// put all answers in order and make them again.
type Witness struct {
	Group, Epoch uint32
	Term, Index  uint64        // of the entry, or what was applied if Uncommitted
	Position     int           // of the request in the entry, from 1; 0 if Uncommitted
	SlotTime     time.Duration // of the limit's slot, at the first decision if Repeated; 0: not known
	Uncommitted  bool          // judged at the leader's applied state
	Repeated     bool          // the answer of an earlier copy
}

// Never is the RetryAfter of a denial that no wait can cure.
const Never time.Duration = -1

// Decision is the answer to one request. A denial is an answer, not an error.
// Its own Answer is the headline: that of the policy which is strictest now. But
// its Delay is the longest of all, and its PermitID that of the first concurrency
// limit, whichever is strictest.
type Decision struct {
	Answer
	Limits []Answer // one per policy, in order of their ids; nil if Answer is the only one, see All

	Degraded    bool        // no bucket of the cluster was asked: made by the failure mode of the policy
	FailureMode FailureMode // which, if Degraded: that of the policy in Answer
	Remembered  bool        // a denial of the cluster some ms ago that still stands; see RememberDenials
	Leased      bool        // spent from a lease that the client holds: the numbers are the cluster's, less what was spent here
	Uncommitted bool        // a denial read from the leader's applied state
	Group       uint32      // that decided; it and what follows are 0 where the client did
	Epoch       uint32
	Term        uint64
	Index       uint64        // log index that decided, or the applied index when uncommitted
	SlotTime    time.Duration // the slot time the decision was made at
}

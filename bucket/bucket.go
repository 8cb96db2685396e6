// Package bucket decides: pure, exact arithmetic of limit, state, time and cost,
// and the table that holds a group's buckets, slot by slot.
//
// Nothing here knows a clock, a goroutine, a socket or a log. Times are
// nanoseconds of group time, carried by the entry that is applied, and of slot
// time, which is group time plus the slot's offset (time.go). The same entries applied in the same order give byte-identical tables on every
// machine.
//
// The way of one request: the leader's Builder writes it into an entry, the log
// carries the entry to every replica, and each Table.Apply decodes it, judges it
// and gives the same Result. Peek judges without a log and changes nothing.
//
// Each algorithm is a kind (kind.go), a file of its own over the 16 bytes of
// state that a cell has: a token bucket is whole tokens and a fraction kept as
// time, so that integers hold it exactly, a sliding log the ends of a list. A
// fresh bucket, from which nothing is missing, is the same as none: a sweep,
// driven by the log, drops fresh ones (sweep.go), and nobody can tell.
//
// A policy that changes is a chain of versions (rules.go), each with the group
// time at which it began here. A cell is priced through all of them (price.go)
// when it is next touched, by a take or by the sweep: again nobody can tell.
//
// Buckets are cells of 36 bytes in open-addressing segments without a pointer
// (segment.go), several to a slot (slot.go), none so large that growing it is
// felt. Results of requests with an id, entries of logs and permits are records of 96 bytes in pages (record.go,
// pool.go), found by linear hashing (index.go), or few of a session by marks in its
// record (session.go), and dropped in order of age (ids.go). A Dump (dump.go) is a frozen view of all that, written while the
// table goes on; Restore takes it over whole or not at all.
//
// A slot moves from table to table through the logs of both (move.go, moving.go).
// An Export (export.go) reads it in chunks (chunk.go) while it serves; a seal stops
// it; the rest follows, and with it its slot time, which runs on in the table that
// adopts it (adopt.go): no stored time is rewritten, and nobody can tell that it
// moved. What it leaves behind is cleared away step by step (clear.go). A slot whose
// state was lost is born again, and its policies say what it counts as (loss.go).
package bucket

// Key is the identity of one bucket: a 128-bit keyed hash of the policy and the
// values of its scope. The zero Key is never used.
type Key struct{ Hi, Lo uint64 }

// The ranges of a limit.
const (
	MaxAmount = 1_000_000_000         // tokens per window, and of a burst or a cost
	MinWindow = 1_000_000             // 1 ms in ns
	MaxWindow = 366 * 24 * 3600 * 1e9 // 366 days in ns
)

// Limit is the numbers of a policy: amount tokens per window, up to burst.
// It is a value and comparable.
type Limit struct {
	Algorithm Algorithm
	Amount    uint64 // tokens per window, 0 … MaxAmount; 0 denies all
	Burst     uint64 // capacity in tokens of TokenBucket and LeakyBucket, 1 … MaxAmount (0 only with amount 0); of others 0 or Amount
	Window    int64  // ns, MinWindow … MaxWindow; of Concurrency the time limit of a permit
}

// Rule is a limit as one version of one policy has it.
type Rule struct {
	Policy  uint64 // hash of the policy's id
	Version uint64
	Limit   Limit
	Loss    Loss // what an absent bucket is after the state was lost
}

// Take asks one bucket for cost tokens.
type Take struct {
	Slot   uint16
	Key    Key
	Rule   Rule
	Cost   uint64 // 0 … MaxAmount; 0 looks
	Shadow bool   // never denies: charged if the request is admitted and it can afford it
}

// Op is what a request does.
type Op uint8

// The operations. OpRefund and OpUndo name by their ID what an earlier OpTake or
// OpLease was charged for, need no takes, and look at none; OpRelease and OpRenew
// have exactly one take, whose slot and key name the bucket, and no use for an ID.
const (
	OpTake    Op = iota
	OpRefund     // give back what the take of an OwnID took, at most once; one not seen yet is refused from then on
	OpUndo       // give back what the take of an ID took and make its result a denial; by the coordinator of several groups
	OpRelease    // end a permit
	OpRenew      // let a permit that is still held end one window after now
	OpLease      // take up to Amount units at once, each at the costs of its takes, for the caller to spend
)

// IDKind says how a request is named, if at all.
type IDKind uint8

// The kinds of request id.
const (
	NoID     IDKind = iota
	ClientID        // (Session, Sequence), made by a client library; dropped once acknowledged
	OwnID           // a caller's own id, as a keyed hash with its home; kept for the horizon
)

// ID names one logical request, so that all its copies are charged once.
type ID struct {
	Kind     IDKind
	Session  uint64
	Sequence uint64 // ≥ 1
	Acked    uint64 // answers to all sequences of the session up to here have arrived
	Own      Key
	Content  uint64 // hash of the request's content; another content under the same id is an error
	AgeNanos uint64 // since the first copy was sent; older than Horizon is TooOld
}

// Horizon is how long results of admitted requests are kept, in ns of slot time.
const Horizon = 120 * 1_000_000_000

// Request is takes that are admitted or denied together. Several on one bucket
// are charged together: each is judged on what those before it would leave.
type Request struct {
	Op          Op
	Home        uint16 // slot that keeps the result of ID
	ID          ID
	NoNewBucket bool   // judged over a cap by the leader: a charge to an absent, or fresh, bucket answers StoreFull
	Amount      uint64 // of OpRefund: at most this much of each take, of an OpLease at most so many units; 0: all. Of OpLease: the most units; 0: 1
	Share       uint64 // of OpLease: of what is left, one such part at most, but one unit at least; 0: 1
	Permit      uint64 // of OpRelease and OpRenew: Answer.PermitID of the take that was granted it
	Takes       []Take // 1 … MaxRequestTakes; see Op
}

// Code says what became of a request.
type Code uint8

// What becomes of a request. Only Admitted charges, and a Repeated one was
// charged before. Denied, Admitted, Repeated and Refunded have answers, the
// others none.
const (
	Denied          Code = iota // changes nothing
	Admitted                    // charged now (a look that would pass is Admitted too, and charges nothing); of OpRenew: renewed
	Repeated                    // the stored answer of an admitted request with the same id
	TooOld                      // the id is acknowledged, evicted or beyond the horizon
	IDReused                    // the same id with other content
	NotHeld                     // a slot is not held by this group
	StoreFull                   // a new bucket was needed and not allowed, or the slot keeps MaxOwnResults own ids
	Refunded                    // of OpRefund, OpUndo and OpRelease: given back; the answers say what each bucket holds now
	NothingToRefund             // nothing was taken under the id, or it was given back before; its take, if it comes, is denied
	PolicyStale                 // a take names an older version of a policy than is known here; uncharged: match again
	NoSuchPermit                // the permit was released or has expired, or never was
	Moved                       // of a Move: the slot is as asked
	MoveAgain                   // of a Move: a part is done, send the same again
	MoveRefused                 // of a Move: nothing has changed
	NotLeasable                 // of OpLease: by its algorithm, or its cost of 0, a take of it can only be made as it is used
)

// Reason says why one take was denied.
type Reason uint8

// The reasons.
const (
	ReasonNone        Reason = iota
	ReasonRateLimited        // a wait cures it
	ReasonCostExceedsCapacity
	ReasonNothingAllowed  // amount 0
	ReasonDeniedElsewhere // the request was undone because another group denied: final for its id, a new id may ask at once
	ReasonRefunded        // the id was refunded before its take arrived
)

// Answer is what one take gets. Its numbers are those after the decision on the
// whole request.
type Answer struct {
	Rule       Rule
	Allowed    bool // this bucket would have admitted; charged only if all takes were
	Reason     Reason
	Capacity   uint64
	Remaining  uint64 // the largest cost that would be admitted now, 0 … Capacity
	ResetAfter int64  // ns until the bucket is fresh; MaxInt64: that long or longer
	RetryAfter int64  // ns until the same cost, asked alone, is admitted; 0 if allowed, -1: never
	Shadow     bool   // the take was one; it did not weigh in the decision

	Delay        int64  // LeakyBucket, admitted: ns for which the caller holds the request; MaxInt64: that long or longer
	PermitID     uint64 // Concurrency, admitted with a cost: names the permit, unique in the slot
	FencingToken uint64 // with PermitID: grows with every grant in the slot, over moves and births too
	Units        uint64 // of OpLease, admitted: how many were taken, the same of all buckets; a shadow that could not afford them has none
	UnitCost     uint64 // of OpLease, admitted: what each of them cost here
}

// Result is what one request gets: Answers[First:First+Count] of its Results, in the order of its takes.
type Result struct {
	Code         Code
	First, Count int32
	SlotTime     int64 // of the home slot, at the decision (of the first decision when Repeated)
	Age          int64 // when Repeated: ns of slot time since the first decision
}

// Results collects what one entry decided. Reset and reuse it.
type Results struct {
	Items   []Result
	Answers []Answer
}

// Reset empties r and keeps its memory.
func (r *Results) Reset() { r.Items, r.Answers = r.Items[:0], r.Answers[:0] }

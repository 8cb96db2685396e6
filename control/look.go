package control

import "time"

// Look is what the control leader sees beside the State when it asks Plan for
// the next steps. Look{} is one that has seen nothing yet: all nodes answer, and
// the members have just changed.
type Look struct {
	// Silent are the registered nodes whose present process does not answer, and
	// since when: how long ago it was heard last, or, when that is less, how long
	// this leader has listened. Any other node is taken to be alive.
	Silent map[string]time.Duration
	// Unfit are serials of voters that are not to be counted on though their node
	// answers: their link to the group's leader is down, they lag far behind, or
	// raft's configuration lacks them. nil: none.
	Unfit map[uint64]bool
	// Quiet is how long State.Members has been the same, as this leader has seen it.
	Quiet time.Duration
	// Steady is how long every member has answered, as this leader has seen it.
	Steady time.Duration
	// ReplaceAfter is how long a node must be silent to be retired; 0: never.
	ReplaceAfter time.Duration
	// Configurations has, for a group without a leader whose replicas that are not
	// Lost have all answered, the serials of the voters in the newest configuration
	// that any of them knows, ascending: see NewEpoch.
	Configurations map[uint32][]uint64
}

// Hysteresis is how long the members must have been the same before slots move
// because of them; a drain does not wait. And how long all must have answered before
// replicas are levelled.
const Hysteresis = 10 * time.Second

// patience is how long a group must look dead before its open moves are cancelled,
// and a node before a replica is not to come there any more.
const patience = 10 * time.Second

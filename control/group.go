package control

import (
	"fmt"
	"strconv"
	"strings"
)

// Group is one raft group: it serves all slots that SlotGroup gives it.
type Group struct {
	ID       uint32    `json:"id"`
	Epoch    uint32    `json:"epoch"`    // from 1, grows when the group is made anew
	Owner    string    `json:"owner"`    // node that should lead
	Formed   bool      `json:"formed"`   // it has had a leader that holds its slots
	Replicas []Replica `json:"replicas"` // by serial

	// Births are the slots, ascending, that a new epoch has not begun to hold yet:
	// its leader gives them a birth under BirthRevision, then reports Born. Slots
	// come in by birth, by a Move, or, in a group that never had a new epoch, by the
	// first placement (State.Initial), and in no other way.
	Births        []uint16 `json:"births,omitempty"`
	BirthRevision uint64   `json:"birth_revision,omitempty"` // 0: there was no NewEpoch
	// Survivors are replicas of epochs that were given up whose processes may still
	// run: where to salvage from, as long as there are Births. Keep them, read-only.
	Survivors []Survivor `json:"survivors,omitempty"`
	Reason    string     `json:"reason,omitempty"` // why the last NewEpoch was
	Added     bool       `json:"added,omitempty"`  // made by AddGroup: it began without slots
	// Restoring are those of Births that are to come whole from State.Backup, and must
	// not begin without, in whatever epoch.
	Restoring []uint16 `json:"restoring,omitempty"`
}

// Survivor is a replica of an epoch that was given up.
type Survivor struct {
	Epoch uint32 `json:"epoch"`
	Replica
}

// Replica is one node's member of a group.
type Replica struct {
	Serial      uint64 `json:"serial"` // never reused in a cluster
	Node        string `json:"node"`
	Incarnation string `json:"incarnation"` // of the process whose memory holds it
	Role        Role   `json:"role"`
}

// Role is what a replica is to its group.
type Role uint8

// The roles. Apart from Leaving ones, the replicas of a group are on distinct
// nodes, and at most one is Joining.
const (
	Voter   Role = iota + 1
	Joining      // to be added without a vote, caught up, then promoted
	Leaving      // replaced: to be taken out of the raft configuration
	Missing      // its node is removed and no other is left to take its place
)

var roles = [...]string{Voter: "voter", Joining: "joining", Leaving: "leaving", Missing: "missing"}

func (r Role) String() string {
	if r >= Voter && r <= Missing {
		return roles[r]
	}
	return fmt.Sprintf("role %d", uint8(r))
}

// Replica finds a replica of g by serial.
func (g Group) Replica(serial uint64) (Replica, bool) {
	for _, r := range g.Replicas {
		if r.Serial == serial {
			return r, true
		}
	}
	return Replica{}, false
}

// ReplicaID is the name of a replica in raft, as server id and as address:
// "<node>/<incarnation>/<group>/<epoch>/<serial>".
func (g Group) ReplicaID(r Replica) string {
	b := make([]byte, 0, 64) // nodes make thousands a second
	b = append(append(append(append(b, r.Node...), '/'), r.Incarnation...), '/')
	b = append(strconv.AppendUint(b, uint64(g.ID), 10), '/')
	b = append(strconv.AppendUint(b, uint64(g.Epoch), 10), '/')
	return string(strconv.AppendUint(b, r.Serial, 10))
}

// ID is a replica id taken apart.
type ID struct {
	Node, Incarnation string
	Group, Epoch      uint32
	Serial            uint64
}

// ParseReplicaID is the inverse of ReplicaID. ok is false for any other string.
func ParseReplicaID(s string) (id ID, ok bool) {
	var found [4]bool
	var group, epoch string
	id.Node, s, found[0] = strings.Cut(s, "/")
	id.Incarnation, s, found[1] = strings.Cut(s, "/")
	group, s, found[2] = strings.Cut(s, "/")
	epoch, s, found[3] = strings.Cut(s, "/")
	if found != [4]bool{true, true, true, true} || id.Node == "" || id.Incarnation == "" {
		return ID{}, false
	}
	g, ok1 := decimal(group, 32)
	e, ok2 := decimal(epoch, 32)
	n, ok3 := decimal(s, 64)
	if !ok1 || !ok2 || !ok3 {
		return ID{}, false
	}
	id.Group, id.Epoch, id.Serial = uint32(g), uint32(e), n
	return id, true
}

// decimal reads a number as ReplicaID writes it: without leading zeros.
func decimal(s string, bits int) (n uint64, ok bool) {
	n, err := strconv.ParseUint(s, 10, bits)
	return n, err == nil && (s[0] != '0' || len(s) == 1)
}

// occupied says whether a node holds a place in g other than that of the replica except.
func (g Group) occupied(node string, except uint64) bool {
	for _, r := range g.Replicas {
		if r.Node == node && r.Role != Leaving && r.Serial != except {
			return true
		}
	}
	return false
}

// with returns the first replica of a role.
func (g Group) with(role Role) (Replica, bool) {
	for _, r := range g.Replicas {
		if r.Role == role {
			return r, true
		}
	}
	return Replica{}, false
}

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
	return fmt.Sprintf("%s/%s/%d/%d/%d", r.Node, r.Incarnation, g.ID, g.Epoch, r.Serial)
}

// ID is a replica id taken apart.
type ID struct {
	Node, Incarnation string
	Group, Epoch      uint32
	Serial            uint64
}

// ParseReplicaID is the inverse of ReplicaID. ok is false for any other string.
func ParseReplicaID(s string) (id ID, ok bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 5 || parts[0] == "" || parts[1] == "" {
		return ID{}, false
	}
	group, err1 := strconv.ParseUint(parts[2], 10, 32)
	epoch, err2 := strconv.ParseUint(parts[3], 10, 32)
	serial, err3 := strconv.ParseUint(parts[4], 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return ID{}, false
	}
	id = ID{parts[0], parts[1], uint32(group), uint32(epoch), serial}
	same := Group{ID: id.Group, Epoch: id.Epoch}.ReplicaID(Replica{Node: id.Node, Incarnation: id.Incarnation, Serial: serial})
	return id, same == s // no leading zeros
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

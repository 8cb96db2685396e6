package control

import (
	"slices"
	"strings"

	"github.com/ringlimit/ringlimit/policy"
)

// State is the agreed configuration at one index of the control log. It never
// changes: each command that changes something makes a new State, so readers on
// other goroutines keep the one they have. Treat all that it points to as read-only.
type State struct {
	Index         uint64      `json:"index"`          // of the last command that changed anything
	ClusterID     string      `json:"cluster_id"`     // "": no Found command yet
	Secret        []byte      `json:"secret"`         // 16 bytes, keys bucket identities
	RoutingKey    []byte      `json:"routing_key"`    // 16 bytes, keys the slot hash
	Slots         int         `json:"slots"`          // 1 … 65,536
	GroupCount    int         `json:"group_count"`    // 0: one per node
	Expect        int         `json:"expect"`         // nodes to wait for before the first placement
	Voters        int         `json:"voters"`         // of the control group: 1, 3 or 5
	Replication   int         `json:"replication"`    // replicas of a group; 0 before the first placement
	Revision      uint64      `json:"revision"`       // of the placement: grows with each change of slots, groups or replicas
	NextSerial    uint64      `json:"next_serial"`    // of the next replica, from 1
	Nodes         []Node      `json:"nodes"`          // by name
	Groups        []Group     `json:"groups"`         // by id; empty before the first placement
	SlotGroup     []uint32    `json:"slot_group"`     // group of each slot
	Policies      *policy.Set `json:"policies"`       // nil before Found
	PolicyVersion uint64      `json:"policy_version"` // the highest given to any policy or override, also of a deleted one; 0: none yet

	SettingsVersion uint64   `json:"settings_version,omitempty"` // of what stands beside the policies of the set
	Past            []Past   `json:"past,omitempty"`             // superseded versions of policies, by Ended
	Audit           []*Entry `json:"audit,omitempty"`            // changes of policies, by version

	Moves        []Move `json:"moves,omitempty"`         // open ones, by slot
	NextRevision uint64 `json:"next_revision,omitempty"` // of the next move or birth; 0: none was given out yet
	NextGroup    uint32 `json:"next_group,omitempty"`    // id of the next group; 0: above all there are
	Wish         *Wish  `json:"wish,omitempty"`          // where slots shall be; nil: where they are

	Backup     string `json:"backup,omitempty"`      // id of the backup that the cluster was made from
	FirstEpoch uint32 `json:"first_epoch,omitempty"` // of the groups of the first placement; 0: 1
}

// Node is one registered process, or one that was removed.
type Node struct {
	Name        string `json:"name"`
	Directory   string `json:"directory"`   // random id of its data directory
	Incarnation string `json:"incarnation"` // random, of its present process
	GRPC        string `json:"grpc"`        // addresses
	Peer        string `json:"peer"`
	Gossip      string `json:"gossip"`
	HTTP        string `json:"http"`
	Zone        string `json:"zone"`
	FormatMax   int    `json:"format_max"` // newest format that it reads
	Removed     bool   `json:"removed"`    // an operator said that it will never return
	// Past are the incarnations before this one, newest last, at most maxIncarnations: a
	// registration of theirs that arrives late is refused.
	Past []string `json:"past,omitempty"`
	// Unsure are earlier processes of the name that another data directory took it
	// from. They did not answer then, and may still run: what they hold is not lost
	// for good until their directory is opened anew, or the node is removed.
	Unsure   []Process `json:"unsure,omitempty"`
	Draining bool      `json:"draining,omitempty"` // leaving: it gets nothing, and what it has moves away. With Removed: it has left
	Retired  bool      `json:"retired,omitempty"`  // dead for so long that it does not count for placement, until it is back
}

// Process is one incarnation of a node, and the directory that it had locked.
type Process struct {
	Directory   string `json:"directory"`
	Incarnation string `json:"incarnation"`
}

// maxIncarnations bounds Node.Past: a proposal is never as many restarts late.
const maxIncarnations = 16

// Placed says whether the first placement was made.
func (s *State) Placed() bool { return len(s.Groups) > 0 }

// Node finds a node by name, also a removed one.
func (s *State) Node(name string) (Node, bool) {
	i, ok := s.node(name)
	if !ok {
		return Node{}, false
	}
	return s.Nodes[i], true
}

// Registered returns the names of all nodes that are not removed, sorted.
func (s *State) Registered() []string {
	var names []string
	for _, n := range s.Nodes {
		if !n.Removed {
			names = append(names, n.Name)
		}
	}
	return names
}

// Group finds a group by id.
func (s *State) Group(id uint32) (Group, bool) {
	i, ok := s.group(id)
	if !ok {
		return Group{}, false
	}
	return s.Groups[i], true
}

// SlotsOf returns the slots of a group, ascending.
func (s *State) SlotsOf(group uint32) []uint16 {
	var slots []uint16
	for slot, g := range s.SlotGroup {
		if g == group {
			slots = append(slots, uint16(slot))
		}
	}
	return slots
}

// CountSlots counts the slots of a group.
func (s *State) CountSlots(group uint32) int {
	n := 0
	for _, g := range s.SlotGroup {
		if g == group {
			n++
		}
	}
	return n
}

// Gone says whether a replica is gone for good: its node came back as another
// process, was removed, or is not known.
func (s *State) Gone(r Replica) bool {
	n, ok := s.Node(r.Node)
	return !ok || n.Removed || n.Incarnation != r.Incarnation
}

func (s *State) node(name string) (int, bool) {
	return slices.BinarySearchFunc(s.Nodes, name, func(n Node, name string) int { return strings.Compare(n.Name, name) })
}

func (s *State) group(id uint32) (int, bool) {
	return slices.BinarySearchFunc(s.Groups, id, func(g Group, id uint32) int { return int(int64(g.ID) - int64(id)) })
}

// registered returns the node of a name unless it is removed.
func (s *State) registered(name string) (Node, bool) {
	n, ok := s.Node(name)
	return n, ok && !n.Removed
}

// clone returns a copy whose Nodes and Groups may be written; a Group's Replicas,
// a Node's Past and all about policies are still shared and must be cloned before
// they are.
func (s *State) clone() *State {
	c := *s
	c.Nodes = slices.Clone(s.Nodes)
	c.Groups = slices.Clone(s.Groups)
	return &c
}

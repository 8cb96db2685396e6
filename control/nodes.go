package control

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/policy"
)

// The bounds of what a command may say.
const (
	keySize  = 16
	maxSlots = 1 << 16
	maxName  = 128  // bytes of a node's name, directory, incarnation
	maxText  = 1024 // bytes of an address or zone
)

func (c Found) apply(s *State) (bool, error) {
	switch {
	case s.ClusterID != "":
		return false, fault.New(fault.Conflict, "the cluster is founded already, its id is %s", s.ClusterID)
	case c.ClusterID == "" || len(c.ClusterID) > maxName:
		return false, fault.Field("cluster_id", "%d bytes, want 1 … %d", len(c.ClusterID), maxName)
	case len(c.Secret) != keySize:
		return false, fault.Field("secret", "%d bytes, want %d", len(c.Secret), keySize)
	case len(c.RoutingKey) != keySize:
		return false, fault.Field("routing_key", "%d bytes, want %d", len(c.RoutingKey), keySize)
	case c.Slots < 1 || c.Slots > maxSlots:
		return false, fault.Field("slots", "%d, want 1 … %d", c.Slots, maxSlots)
	case c.Groups < 0:
		return false, fault.Field("groups", "%d, want 1 or more, or 0 for one per node", c.Groups)
	case c.Expect < 1:
		return false, fault.Field("expect", "%d, want 1 or more", c.Expect)
	case c.Voters != 1 && c.Voters != 3 && c.Voters != 5:
		return false, fault.Field("voters", "%d, want 1, 3 or 5", c.Voters)
	}
	if err := c.By.check(); err != nil {
		return false, err
	}
	set := policy.Set{Home: []string{"tenant"}}
	if c.Policies != nil {
		if err := c.Policies.Validate(); err != nil {
			return false, fault.Field("policies", "%v", err)
		}
		set = *c.Policies
	}
	entry := &Entry{Version: 1, Action: ActionFound, Author: c.By}
	e := edit{version: 1, entry: entry}
	sorted := slices.Clone(set.Policies)
	slices.SortFunc(sorted, func(a, b *policy.Policy) int { return strings.Compare(a.ID, b.ID) })
	set.Policies = make([]*policy.Policy, len(sorted))
	for i, p := range sorted {
		set.Policies[i] = e.made(nil, p)
		s.PolicyVersion = 1
	}
	set.Omitted, set.Overrides = nil, nil
	if entry.Total > 0 {
		s.note(entry)
	}
	s.ClusterID, s.Secret, s.RoutingKey = c.ClusterID, c.Secret, c.RoutingKey
	s.Slots, s.GroupCount, s.Expect, s.Voters = c.Slots, c.Groups, c.Expect, c.Voters
	s.Policies = &set
	return true, nil
}

func (c Register) apply(s *State) (bool, error) {
	n := c.Node
	if err := checkNode(n); err != nil {
		return false, err
	}
	if s.ClusterID == "" {
		return false, errNotFounded()
	}
	n.Removed, n.Past, n.Unsure, n.Draining, n.Retired = false, nil, nil, false, false
	i, known := s.node(n.Name)
	if !known {
		s.Nodes = slices.Insert(s.Nodes, i, n)
		return true, nil
	}
	old := s.Nodes[i]
	if err := mayFollow(old, n, c.Supersede); err != nil {
		return false, err
	}
	n.Past, n.Unsure = old.Past, s.unsure(old, n)
	n.Draining = old.Draining && !old.Removed && n.Directory == old.Directory
	if n.Incarnation != old.Incarnation {
		n.Past = append(slices.Clone(old.Past), old.Incarnation)
		n.Past = n.Past[max(0, len(n.Past)-maxIncarnations):]
	}
	s.Nodes[i] = n
	return !reflect.DeepEqual(n, old), nil
}

// unsure returns the processes of a name that may still run once n has taken the
// place of old, as far as they have replicas.
func (s *State) unsure(old, n Node) []Process {
	var out []Process
	for _, p := range append(slices.Clone(old.Unsure), Process{old.Directory, old.Incarnation}) {
		if p.Directory != n.Directory && !old.Removed && s.holds(n.Name, p.Incarnation) {
			out = append(out, p)
		}
	}
	return out
}

// holds says whether a process has replicas of any group.
func (s *State) holds(node, incarnation string) bool {
	of := func(r Replica) bool { return r.Node == node && r.Incarnation == incarnation }
	for _, g := range s.Groups {
		if slices.ContainsFunc(g.Replicas, of) || slices.ContainsFunc(g.Survivors, func(r Survivor) bool { return of(r.Replica) }) {
			return true
		}
	}
	return false
}

// mayFollow says why n may not take the place of old, which has the same name.
func mayFollow(old, n Node, supersede bool) error {
	switch {
	case slices.Contains(old.Past, n.Incarnation):
		return fault.New(fault.Conflict, "node %q has been restarted since: incarnation %s is over", n.Name, n.Incarnation)
	case old.Removed && n.Incarnation == old.Incarnation:
		return fault.New(fault.Conflict, "node %q was removed; restart it to let it join as a new node", n.Name)
	case old.Removed || n.Directory == old.Directory || supersede:
		return nil
	default:
		return fault.New(fault.Conflict, "the name %q belongs to a node with another data directory, which still answers: "+
			"give this one another --name, or stop the other, or start this one with the other's --data-dir", n.Name)
	}
}

func checkNode(n Node) error {
	for _, f := range []struct{ field, value string }{
		{"name", n.Name}, {"directory", n.Directory}, {"incarnation", n.Incarnation},
	} {
		if err := checkWord(f.value); err != nil {
			return fault.Field("node."+f.field, "%v", err)
		}
	}
	for _, f := range []struct{ field, value string }{
		{"grpc", n.GRPC}, {"peer", n.Peer}, {"gossip", n.Gossip}, {"http", n.HTTP}, {"zone", n.Zone},
	} {
		if len(f.value) > maxText {
			return fault.Field("node."+f.field, "%d bytes, want at most %d", len(f.value), maxText)
		}
		if strings.ContainsFunc(f.value, unicode.IsControl) {
			return fault.Field("node."+f.field, "%q, want no control characters", f.value)
		}
	}
	return nil
}

// checkWord accepts what can stand in a replica id and in a gossip name.
func checkWord(w string) error {
	if len(w) < 1 || len(w) > maxName {
		return fmt.Errorf("%d bytes, want 1 … %d", len(w), maxName)
	}
	for _, c := range []byte(w) {
		if c <= ' ' || c > '~' || c == '/' || c == '@' {
			return fmt.Errorf("%q, want printable ASCII without space, / and @", w)
		}
	}
	return nil
}

func errNotFounded() error { return fault.New(fault.NotReady, "there is no cluster yet") }

func (c Remove) apply(s *State) (bool, error) {
	i, ok := s.node(c.Name)
	switch {
	case !ok:
		return false, fault.New(fault.NotFound, "no node has the name %q", c.Name)
	case s.Nodes[i].Removed:
		return false, nil
	case len(s.Registered()) == 1:
		return false, fault.New(fault.Conflict, "%q is the last node of the cluster", c.Name)
	}
	s.Nodes[i].Removed = true
	s.Nodes[i].Unsure = nil // the operator speaks for them too
	s.settleOwners()
	return true, nil
}

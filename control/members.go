package control

import (
	"slices"

	"github.com/ringlimit/ringlimit/api/fault"
)

// Drain begins to move all that a node has to others; when nothing is left on
// it, it has Left. It is refused when no other member would remain.
type Drain struct {
	Name string `json:"name"`
}

// Undrain ends a drain that is not finished.
type Undrain struct {
	Name string `json:"name"`
}

// Left ends a drain: no replica is on the node and it owns no group. The node is
// Removed then, and its process should end; started again, it joins as a new node.
type Left struct {
	Name string `json:"name"`
}

// Retire says that a node has been dead for so long that others take its place.
// What it holds is not lost for good: it may come back.
type Retire struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"` // its present one
}

// Unretire says that a retired node answers again. A registration does so too.
type Unretire struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"` // its present one
}

// SetReplication sets how many replicas each group shall have: 3 once there are
// three nodes that do not leave, 1 only while a drain leaves fewer than three.
type SetReplication struct {
	Replicas int `json:"replicas"` // 1 or 3
}

func (Drain) kind() string          { return "drain" }
func (Undrain) kind() string        { return "undrain" }
func (Left) kind() string           { return "left" }
func (Retire) kind() string         { return "retire" }
func (Unretire) kind() string       { return "unretire" }
func (SetReplication) kind() string { return "set_replication" }

// known returns a registered node to be changed in place.
func (s *State) known(name string) (*Node, error) {
	i, ok := s.node(name)
	switch {
	case !ok:
		return nil, fault.New(fault.NotFound, "no node has the name %q", name)
	case s.Nodes[i].Removed:
		return nil, fault.New(fault.NotFound, "node %q is not in the cluster any more", name)
	}
	return &s.Nodes[i], nil
}

func (c Drain) apply(s *State) (bool, error) {
	n, err := s.known(c.Name)
	if err != nil {
		return false, err
	}
	others := slices.DeleteFunc(s.Members(), func(name string) bool { return name == c.Name })
	switch {
	case n.Draining:
		return false, nil
	case !s.Placed():
		return false, fault.New(fault.NotReady, "there is no placement yet")
	case len(others) == 0:
		return false, fault.New(fault.Conflict, "no other node is left to take what %q has", c.Name)
	}
	n.Draining = true
	return true, nil
}

func (c Undrain) apply(s *State) (bool, error) {
	n, err := s.known(c.Name)
	if err != nil || !n.Draining {
		return false, err
	}
	n.Draining = false
	return true, nil
}

func (c Left) apply(s *State) (bool, error) {
	n, err := s.known(c.Name)
	switch {
	case err != nil:
		return false, err
	case !n.Draining:
		return false, fault.New(fault.Conflict, "node %q does not drain", c.Name)
	}
	if g, has := s.uses(c.Name); has {
		return false, fault.New(fault.Conflict, "node %q still has a place in group %d", c.Name, g.ID)
	}
	n.Removed = true
	return true, nil
}

// uses returns a group that a node owns or has a replica of.
func (s *State) uses(node string) (Group, bool) {
	for _, g := range s.Groups {
		if g.Owner == node || slices.ContainsFunc(g.Replicas, func(r Replica) bool { return r.Node == node }) {
			return g, true
		}
	}
	return Group{}, false
}

func (c Retire) apply(s *State) (bool, error) {
	n, err := s.known(c.Name)
	if err != nil {
		return false, err
	}
	others := slices.DeleteFunc(s.Members(), func(name string) bool { return name == c.Name })
	switch {
	case n.Incarnation != c.Incarnation:
		return false, fault.New(fault.Conflict, "node %q is another process now", c.Name)
	case n.Retired:
		return false, nil
	case len(others) == 0:
		return false, fault.New(fault.Conflict, "no other node is left to take the place of %q", c.Name)
	}
	n.Retired = true
	s.settleOwners()
	return true, nil
}

func (c Unretire) apply(s *State) (bool, error) {
	n, err := s.known(c.Name)
	switch {
	case err != nil:
		return false, err
	case n.Incarnation != c.Incarnation:
		return false, fault.New(fault.Conflict, "node %q is another process now", c.Name)
	case !n.Retired:
		return false, nil
	}
	n.Retired = false
	return true, nil
}

// Staying counts the registered nodes that do not drain, and says how many replicas
// each group shall have on them: only a drain lowers that, never a death.
func (s *State) Staying() (nodes, replicas int) {
	for _, node := range s.Nodes {
		if !node.Removed && !node.Draining {
			nodes++
		}
	}
	return nodes, replication(nodes)
}

// drains says whether a node is being drained.
func (s *State) drains() bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Draining && !n.Removed })
}

func (c SetReplication) apply(s *State) (bool, error) {
	n, _ := s.Staying()
	switch {
	case c.Replicas != 1 && c.Replicas != 3:
		return false, fault.Field("replicas", "%d, want 1 or 3", c.Replicas)
	case !s.Placed():
		return false, fault.New(fault.NotReady, "there is no placement yet")
	case c.Replicas == s.Replication:
		return false, nil
	case c.Replicas > n:
		return false, fault.New(fault.Conflict, "%d replicas for %d nodes", c.Replicas, n)
	case c.Replicas < s.Replication && (n >= s.Replication || !s.drains()):
		return false, fault.New(fault.Conflict, "only a drain that leaves fewer than %d nodes lowers the replication, %d stay", s.Replication, n)
	}
	s.Replication = c.Replicas
	return true, nil
}

package control

import (
	"encoding/json"
	"fmt"
)

// snapshotVersion is the first byte of a snapshot; JSON of the State follows.
// Version 1 knew no history, audit or overrides, and fewer fields of a policy.
const snapshotVersion = 2

// Snapshot returns the state in bytes, the same for equal states.
func (m *Machine) Snapshot() []byte { return m.State().Snapshot() }

// Snapshot returns s in bytes: what Machine.Restore reads. Any goroutine may call it.
func (s *State) Snapshot() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("encode control state: %v", err)) // strings, numbers and policies: cannot fail
	}
	return append([]byte{snapshotVersion}, b...)
}

// Restore replaces the state by that of a snapshot. With an error it changes nothing.
func (m *Machine) Restore(data []byte) error {
	if len(data) == 0 || data[0] < 1 || data[0] > snapshotVersion {
		return fmt.Errorf("control snapshot: unknown version, this build knows 1 … %d", snapshotVersion)
	}
	s := new(State)
	if err := strict(data[1:], s); err != nil {
		return fmt.Errorf("control snapshot: %w", err)
	}
	if err := s.check(); err != nil {
		return fmt.Errorf("control snapshot: %w", err)
	}
	m.state.Store(s)
	return nil
}

// check returns what in s no sequence of commands could have made, as far as
// later commands rely on it.
func (s *State) check() error {
	for i := 1; i < len(s.Nodes); i++ {
		if s.Nodes[i-1].Name >= s.Nodes[i].Name {
			return fmt.Errorf("node %q out of order", s.Nodes[i].Name)
		}
	}
	for i, g := range s.Groups {
		if i > 0 && s.Groups[i-1].ID >= g.ID {
			return fmt.Errorf("group %d out of order", g.ID)
		}
		if err := s.checkGroup(g); err != nil {
			return fmt.Errorf("group %d: %w", g.ID, err)
		}
	}
	if s.Placed() && len(s.SlotGroup) != s.Slots {
		return fmt.Errorf("%d slots are placed, want %d", len(s.SlotGroup), s.Slots)
	}
	for slot, id := range s.SlotGroup {
		if _, ok := s.group(id); !ok {
			return fmt.Errorf("slot %d is in group %d, which is not there", slot, id)
		}
	}
	if (s.ClusterID == "") != (s.Policies == nil) {
		return fmt.Errorf("a cluster has policies from its first command on")
	}
	if s.Policies == nil {
		return nil
	}
	return s.checkPolicies()
}

// checkPolicies is check for all about policies.
func (s *State) checkPolicies() error {
	if err := s.Policies.Validate(); err != nil {
		return err
	}
	for i, p := range s.Policies.Policies {
		switch {
		case i > 0 && s.Policies.Policies[i-1].ID >= p.ID:
			return fmt.Errorf("policy %q out of order", p.ID)
		case p.Version < 1 || p.Version > s.PolicyVersion:
			return fmt.Errorf("policy %q has version %d, the newest is %d", p.ID, p.Version, s.PolicyVersion)
		}
	}
	last := uint64(0)
	for _, p := range s.Past {
		if p.Policy == nil || p.Ended < last || p.Ended > s.PolicyVersion || p.Policy.Version >= p.Ended {
			return fmt.Errorf("a past version ended at %d after %d", p.Ended, last)
		}
		last = p.Ended
	}
	last = 0
	for _, e := range s.Audit {
		if e == nil || e.Version <= last || e.Version > s.PolicyVersion {
			return fmt.Errorf("the audit log is out of order after version %d", last)
		}
		last = e.Version
	}
	for _, o := range s.Policies.Overrides {
		if o.Version < 1 || o.Version > s.PolicyVersion {
			return fmt.Errorf("an override of %q has version %d, the newest is %d", o.Policy, o.Version, s.PolicyVersion)
		}
	}
	return nil
}

func (s *State) checkGroup(g Group) error {
	joining, last := 0, uint64(0)
	for _, r := range g.Replicas {
		switch {
		case r.Serial <= last || r.Serial >= s.NextSerial:
			return fmt.Errorf("serial %d after %d, next is %d", r.Serial, last, s.NextSerial)
		case r.Role < Voter || r.Role > Missing:
			return fmt.Errorf("replica %d: %v", r.Serial, r.Role)
		case r.Role != Leaving && g.occupied(r.Node, r.Serial):
			return fmt.Errorf("two replicas on node %q", r.Node)
		case r.Role == Joining:
			joining++
		}
		last = r.Serial
	}
	if joining > 1 {
		return fmt.Errorf("%d replicas are joining", joining)
	}
	return nil
}

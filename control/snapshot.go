package control

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The first byte of a snapshot; JSON of the State follows. Version 1 knew no
// history, audit or overrides, and fewer fields of a policy. A state is written
// in version 2 as long as nothing in it is newer, so that older nodes read it.
const (
	snapshotOld     = 2
	snapshotVersion = 3 // groups and slots that change
)

// Snapshot returns the state in bytes, the same for equal states.
func (m *Machine) Snapshot() []byte { return m.State().Snapshot() }

// Snapshot returns s in bytes: what Machine.Restore reads. Any goroutine may call it.
func (s *State) Snapshot() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("encode control state: %v", err)) // strings, numbers and policies: cannot fail
	}
	version := byte(snapshotOld)
	if s.newer() {
		version = snapshotVersion
	}
	return append([]byte{version}, b...)
}

// newer says whether s has what version 2 of a snapshot cannot say.
func (s *State) newer() bool {
	if s.Moves != nil || s.NextRevision > 0 || s.NextGroup > 0 || s.Wish != nil || s.Backup != "" {
		return true
	}
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Draining || n.Retired || n.Unsure != nil })
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
	if err := s.checkMoves(); err != nil {
		return err
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

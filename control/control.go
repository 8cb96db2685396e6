// Package control is the agreed configuration of a cluster as a deterministic
// state machine: which nodes there are, which groups they form, which slots the
// groups serve, and the policies. Commands go in through the control group's
// log, a State comes out, the same on every node.
//
// Plan looks at a State, and at what the control leader sees beside it, and says
// which commands should follow: small steps from the present placement to the
// wished one. Whoever leads the control group proposes them; because each is
// judged again when it is applied, a stale or repeated proposal does no harm.
// What groups have done comes back as commands too (Form, Promoted, Dropped,
// Flip, Settled, Born), so that any leader resumes where another one stopped.
//
// The package is pure: no clock, goroutine, socket or log.
package control

import (
	"fmt"
	"sync/atomic"
)

// Machine holds the newest State. Apply, Restore and Snapshot are called from
// one goroutine at a time (raft's); State may be called from any.
type Machine struct {
	state atomic.Pointer[State] // what it points to never changes
}

// Result is what became of a command.
type Result struct {
	Err     error // a refusal of some fault kind: nothing changed
	Changed bool  // State is a new one
	// Entry is what the command did to policies or overrides; nil: nothing.
	Entry *Entry
}

// New returns a machine that no command has reached yet.
func New() *Machine {
	m := new(Machine)
	m.state.Store(&State{NextSerial: 1})
	return m
}

// State returns the configuration now. It never changes: see State.
func (m *Machine) State() *State { return m.state.Load() }

// Accepts says whether a command would change a state now, rather than be refused
// or do nothing.
func Accepts(s *State, c Command) bool {
	changed, err := c.apply(s.clone())
	return err == nil && changed
}

// Apply applies the command that Encode wrote to data, at an index of the log.
// A command that cannot be done is refused in the Result. An error means that
// data cannot be understood (another version, an unknown kind, garbage): this
// replica must stop, since skipping would let it drift from the others.
func (m *Machine) Apply(index uint64, data []byte) (Result, error) {
	c, err := Decode(data)
	if err != nil {
		return Result{}, fmt.Errorf("control entry %d: %w", index, err)
	}
	return m.Do(index, c), nil
}

// Do is Apply for a command that Decode has read from the entry already; a
// command that anything else made may be another than the other replicas read.
func (m *Machine) Do(index uint64, c Command) Result {
	old := m.State()
	next := old.clone()
	changed, err := c.apply(next)
	if err != nil {
		return Result{Err: err}
	}
	if !changed {
		return Result{}
	}
	next.Index = index
	m.state.Store(next)
	r := Result{Changed: true}
	if next.PolicyVersion != old.PolicyVersion {
		r.Entry = next.Made(next.PolicyVersion)
	}
	return r
}

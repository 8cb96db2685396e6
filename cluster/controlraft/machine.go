package controlraft

import (
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/control"
)

// machine adapts control.Machine to raft.FSM. raft calls Apply, Snapshot and
// Restore from one goroutine; readers use the published state.
type machine struct {
	m        *control.Machine
	state    atomic.Pointer[control.State]
	index    atomic.Uint64        // of the last command applied, also of one that changed nothing
	read     atomic.Pointer[read] // a long entry under way; nil: none
	broken   error
	onChange func()
	fatal    func(error)
}

func (m *machine) publish() { m.state.Store(m.m.State()) }

func (m *machine) Apply(l *raft.Log) any {
	if m.broken != nil {
		return m.broken
	}
	result, err := m.apply(l)
	if err != nil {
		m.broken = fmt.Errorf("control entry %d: %w", l.Index, err)
		m.fatal(m.broken)
		return m.broken
	}
	m.publish()
	m.index.Store(l.Index)
	if result.Changed { // else whoever proposes what is refused would be woken to propose it again
		m.onChange()
	}
	return result
}

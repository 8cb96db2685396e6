package controlraft

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/control"
)

// longCommand is where an entry counts as long: a file of thousands of policies.
const longCommand = 64 << 10

// Patience is for how long a command may take to be committed and applied. A
// busy machine needs seconds for one of 100,000 policies.
func Patience(entry []byte) time.Duration {
	if len(entry) > longCommand {
		return 40 * time.Second
	}
	return 5 * time.Second
}

// ProposeRead decodes an entry of another node and commits it; see ProposeEntry.
// An entry that cannot be read is fault.InvalidArgument: it would stop every replica.
func (g *Group) ProposeRead(ctx context.Context, entry []byte) (index uint64, err error) {
	if !g.Leads() {
		return 0, fault.Leader(nil)
	}
	c, err := control.Decode(entry)
	if err != nil {
		return 0, fault.New(fault.InvalidArgument, "control command: %v", err)
	}
	if len(entry) > longCommand {
		g.machine.read.Store(&read{entry, c})
		defer g.machine.read.Store(nil)
	}
	return g.ProposeEntry(ctx, entry)
}

// read is an entry and what Decode has read from it.
type read struct {
	entry   []byte
	command control.Command
}

// apply spares the reading of an entry that this process has just read: the
// leader's raft hands out the very bytes that were proposed.
func (m *machine) apply(l *raft.Log) (control.Result, error) {
	if r := m.read.Load(); r != nil && len(l.Data) == len(r.entry) && &l.Data[0] == &r.entry[0] {
		return m.m.Do(l.Index, r.command), nil
	}
	return m.m.Apply(l.Index, l.Data)
}

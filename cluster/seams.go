package cluster

import (
	"time"

	"github.com/ringlimit/ringlimit/cluster/group"
)

// Seams are where a test gets between a node and what it stands on, where a network
// between nodes is not enough. All are nil in a program that runs; Config.Validate
// makes Now time.Now then.
type Seams struct {
	Now      func() time.Time   // the monotonic clock that group time goes by, and so the receipt of slots
	Applying func(group uint32) // before an entry of a group is applied; may block
	Storing  func() error       // before control entries are stored; may block, or fail as a full disk does

	LogBytes       int            // memory that the log of each replica of a group aims to stay below; 0: as ever
	ControlEntries int            // of the control log, behind a snapshot that is taken every second; 0: as ever
	Counts         *group.Metrics // of all replicas together, of any number of nodes; nil: each has its own
}

// applying is Applying for one group.
func (s *Seams) applying(group uint32) func() {
	if s.Applying == nil {
		return nil
	}
	return func() { s.Applying(group) }
}

// Crash ends Run with err as a crash of the process would: nothing is handed over
// and nobody is told. It is for tests, which cut the node's network off before.
func (n *Node) Crash(err error) { n.fail(err) }

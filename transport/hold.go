package transport

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// served is what a transport asks the raft that it works for, a *raft.Raft.
type served interface {
	State() raft.RaftState
	CurrentTerm() uint64
	GetConfiguration() raft.ConfigurationFuture
}

// Serve tells the transport whose it is. Before that appends are not held, and requests for
// a vote pass unchanged.
func (t *RaftTransport) Serve(r *raft.Raft) { t.serve(r) }

func (t *RaftTransport) serve(r served) { t.raft.Store(&r) }

// Release ends what waits for links, now and from now on: raft is being shut down, which
// waits for its goroutines. Everything else goes on until Close.
func (t *RaftTransport) Release() { t.release() }

// lookAgain is how often an append that waits for a link looks whether it is still wanted.
const lookAgain = time.Second

// hold waits until there is a connection to the node of a replica, for a leader that is to
// send it entries or a snapshot.
//
// It does not fail at once, as a heartbeat does: raft 1.8.0 waits twice as long after each
// failure, up to ten seconds, and does not notice meanwhile that the node is back and that
// it is the one whose vote a commit needs.
//
// It fails with ErrNoLink if nobody wants the link, once the target is not in the group's
// newest configuration, and once this replica does not lead any more in that term: what a
// deposed leader sends keeps others from electing another.
// It fails with errClosed after Release or Close.
func (t *RaftTransport) hold(target raft.ServerAddress, term uint64) error {
	l := t.p.link(nodeOf(target))
	if l.cur.Load() != nil {
		return nil
	}
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for {
		arrived, wanted := l.arrival()
		if !wanted || !t.leads(term) || !t.includes(target) {
			_, _, _ = l.ask() // somebody dials; this request does not wait for it
			return fmt.Errorf("%w %s", ErrNoLink, l.node)
		}
		if arrived == nil {
			return nil
		}
		select {
		case <-arrived:
		case <-tick.C:
		case <-t.released:
			return errClosed
		case <-t.ctx.Done():
			return errClosed
		}
	}
}

// holdSnapshot is hold for a snapshot, which raft has opened already: it is let go of before
// the wait, for it keeps memory, and fails behind it, so that raft opens one of that moment.
func (t *RaftTransport) holdSnapshot(target raft.ServerAddress, term uint64, data io.Reader) error {
	l := t.p.link(nodeOf(target))
	if l.cur.Load() != nil {
		return nil
	}
	if c, ok := data.(io.Closer); ok {
		c.Close()
	}
	if err := t.hold(target, term); err != nil {
		return err
	}
	return fmt.Errorf("%w %s: it is back, and needs a newer snapshot", ErrNoLink, l.node)
}

// leads says whether the replica leads in that term.
func (t *RaftTransport) leads(term uint64) bool {
	r := t.raft.Load()
	return r != nil && (*r).State() == raft.Leader && (*r).CurrentTerm() == term
}

// includes says whether a replica is one of the group.
func (t *RaftTransport) includes(target raft.ServerAddress) bool {
	return slices.ContainsFunc(t.servers(), func(s raft.Server) bool { return s.Address == target })
}

// arrival is closed when the link gets a connection, nil if it has one; wanted says
// whether it is kept connected.
func (l *link) arrival() (arrived <-chan struct{}, wanted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	wanted = l.wanted && !l.gone
	if l.cur.Load() != nil {
		return nil, wanted
	}
	if l.arrived == nil {
		l.arrived = make(chan struct{})
	}
	return l.arrived, wanted
}

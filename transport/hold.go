package transport

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// lookAgain is how often an append that waits for a link looks whether it is still wanted.
const lookAgain = time.Second

// Release ends what waits for links, now and from now on: raft is being shut down, which
// waits for its goroutines. Everything else goes on until Close.
func (t *RaftTransport) Release() { t.release() }

// hold waits until there is a connection to the node of a replica, for a leader that is to
// send it entries or a snapshot.
//
// It does not fail at once, as a heartbeat does: raft 1.8.0 waits twice as long after each
// failure, up to ten seconds, and does not notice meanwhile that the node is back and that
// it is the one whose vote a commit needs.
//
// It fails with ErrNoLink if nobody wants the link, with errClosed after Release or Close,
// and within a second once this replica knows of a later term than that of the leadership.
func (t *RaftTransport) hold(target raft.ServerAddress, term uint64) error {
	l := t.p.link(nodeOf(target))
	var again <-chan time.Time
	for {
		arrived, wanted := l.arrival()
		switch {
		case arrived == nil:
			return nil
		case !wanted:
			_, _, _ = l.ask() // somebody dials; this request does not wait for it
			return fmt.Errorf("%w %s", ErrNoLink, l.node)
		case term < t.term.Load():
			return fmt.Errorf("%w %s, and term %d is over", ErrNoLink, l.node, term)
		}
		if again == nil {
			tick := time.NewTicker(lookAgain)
			defer tick.Stop()
			again = tick.C
		}
		select {
		case <-arrived:
		case <-again:
		case <-t.released:
			return errClosed
		case <-t.ctx.Done():
			return errClosed
		}
	}
}

// heard notes a term that this replica answered with, or leads in.
func (t *RaftTransport) heard(term uint64) {
	for {
		known := t.term.Load()
		if term <= known || t.term.CompareAndSwap(known, term) {
			return
		}
	}
}

// arrival is closed when the link gets a connection, nil if it has one; wanted says
// whether it is kept connected.
func (l *link) arrival() (arrived <-chan struct{}, wanted bool) {
	if l.cur.Load() != nil {
		return nil, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur.Load() != nil {
		return nil, true
	}
	if l.arrived == nil {
		l.arrived = make(chan struct{})
	}
	return l.arrived, l.wanted && !l.gone
}

package group

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
)

// proposal is an entry in the making.
type proposal struct {
	entry func(stamp int64) []byte // nil: there is nothing to propose any more
	undo  func()                   // nil, or what to do when the entry was surely not appended
}

// errStopping is why nothing is proposed once Run ends.
var errStopping = errors.New("the replica is stopping")

// errStopped is what a replica answers that has failed or ended.
var errStopped = fault.New(fault.Unavailable, "this replica has stopped")

// retryPause is the wait before an entry that was refused is proposed again,
// while leadership is being handed over: that takes less than a millisecond or fails.
const retryPause = 2 * time.Millisecond

// propose commits one entry in leadership gen and fills out with what it did.
// While raft hands leadership over it refuses entries without appending them;
// then propose tries again as long as this replica leads.
func (d *driver) propose(ctx context.Context, gen uint64, p proposal, out *applied) error {
	r := d.r
	r.inflight.begin()
	defer r.inflight.end()
	for {
		entry := p.entry(r.lead.clock.Load().now())
		if entry == nil {
			return nil
		}
		err := r.apply(entry, out)
		if err == nil {
			d.last = time.Now()
			return nil
		}
		if !notAppended(err) {
			return err
		}
		if p.undo != nil {
			p.undo()
		}
		if errors.Is(err, raft.ErrNotLeader) || !r.lead.is(gen) {
			return err
		}
		select {
		case <-ctx.Done():
			return errStopping
		case <-time.After(retryPause):
		}
	}
}

// apply hands one entry to raft and waits until it is applied here or failed.
func (r *Replica) apply(entry []byte, out *applied) error {
	defer r.fsm.forget()
	return wait(r.begin(entry, out), out)
}

// begin hands one entry to raft. The caller waits for it, and then has the state
// machine forget.
func (r *Replica) begin(entry []byte, out *applied) raft.ApplyFuture {
	r.fsm.expect(entry, out)
	return r.raft.Load().Apply(entry, r.timers.Enqueue)
}

// wait waits until an entry is applied here, with its results in out, or failed.
func wait(fut raft.ApplyFuture, out *applied) error {
	if err := fut.Error(); err != nil {
		return err
	}
	switch resp := fut.Response().(type) {
	case error:
		return resp
	case *applied:
		if resp == out {
			return nil
		}
	}
	return fmt.Errorf("entry %d gave %T instead of its results", fut.Index(), fut.Response())
}

// notAppended says whether err of Raft.Apply means that the entry is not in any
// log and never will be. In raft 1.8.0: ErrNotLeader comes from the loops of
// followers and candidates, or from a leader that has removed itself, before
// dispatch; ErrLeadershipTransferInProgress likewise; ErrEnqueueTimeout means
// that the main loop did not even take it. ErrLeadershipLost, ErrRaftShutdown and
// errors of the log store can come after the append.
func notAppended(err error) bool {
	return errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) ||
		errors.Is(err, raft.ErrEnqueueTimeout)
}

// outcome maps an error of propose to what callers get.
func (r *Replica) outcome(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errStopping):
		return errStopped
	case notAppended(err):
		return r.notLeading()
	default:
		return fault.New(fault.OutcomeUnknown, "%v", err)
	}
}

package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/policy"
)

// A slot moves from one group to another through the logs of both, and the control
// state says who has it:
//
//	leader of from                      control state           leader of to
//	copy ahead, chunk by chunk ────────────────────────────────▶ adopt: incoming
//	seal: nothing is taken any more
//	the rest, and the slot's time ─────────────────────────────▶ adopt: complete
//	flip ─────────────────────────────▶ the slot is to's ──────▶ own: held, served
//	forget ◀─────────────────────────── to has settled ◀──────── settled
//	settled ──────────────────────────▶ not listed any more
//
// Anything that fails before the flip ends in a cancel, of which the control state
// obeys whichever comes first: from unseals, to drops. The words above are entries
// of the groups' logs, keyed by the move's revision, and may be repeated; so whoever
// leads goes on from the two states, and nothing need be remembered here.

const (
	copiesAtOnce = 4                      // slots that a group copies ahead at once
	chunkBytes   = 64 << 10               // of a chunk
	flipsAtOnce  = 4                      // commands under way: the slots of one seal are not complete all at once
	reportEvery  = 250 * time.Millisecond // of what is settled: the source's forget waits for it, no caller does
	settleEvery  = 100 * time.Millisecond
	settleWait   = 5 * time.Second // for the entries and the command that settle moves
	// recutWithin is how long after a change of policies a slot may arrive that was
	// sealed before its old group had cut over: the new one does so again then, since
	// it may not have known the policy that the slot's buckets are counted by.
	recutWithin = 10 * time.Second
)

// mover does for one replica, while it leads its group, its part of the open moves.
type mover struct {
	n     *Node
	x     *hosted
	seals rounds[bucket.Move]
	flips rounds[control.MoveID]

	copies    chan struct{}  // one token for each slot that is being copied ahead
	transfers sync.WaitGroup // one for each of active, and one for a report under way

	passes atomic.Uint64 // begun in this process

	// Used by runMoves only.
	policies   *policy.Set // as seen last …
	policiesAt time.Time   // … and since when

	term   uint64 // of the leadership that the rest is about
	active map[uint64]*transfer
	ended  map[uint64]control.MovePhase // by revision: what this group has done of the end of a move

	lastLog  time.Time // of a move that cannot be settled
	reported time.Time // when settled moves were told last

	mu      sync.Mutex // guards reports
	reports bool       // one is under way
}

// runMoves moves slots from and to the group of a replica, whenever that leads.
func (n *Node) runMoves(ctx context.Context, x *hosted) {
	m := &mover{n: n, x: x, copies: make(chan struct{}, copiesAtOnce), active: make(map[uint64]*transfer), ended: make(map[uint64]control.MovePhase)}
	m.seals.do = func(moves []bucket.Move) []error { return m.seal(ctx, moves) }
	m.seals.most, m.flips.most = 1, flipsAtOnce
	m.flips.do = func(ids []control.MoveID) []error { return []error{m.flip(ctx, ids)} }
	defer func() {
		m.stop()
		m.transfers.Wait()
		m.seals.wg.Wait()
		m.flips.wg.Wait()
	}()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for {
		changed := n.views.wait()
		m.look(ctx)
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look compares the group with the control state: transfers begin and end, and what
// is decided is settled.
func (m *mover) look(ctx context.Context) {
	s := m.n.control.State()
	g, ok := s.Group(m.x.parsed.Group)
	if len(s.Moves) == 0 && len(m.active) == 0 {
		clear(m.ended)
		return
	}
	if m.policies != s.Policies {
		m.policies, m.policiesAt = s.Policies, time.Now()
	}
	st := m.x.replica.Status()
	if !ok || g.Epoch != m.x.parsed.Epoch || !g.Formed || !st.Serving || m.n.stopping.Load() {
		m.stop()
		return
	}
	if m.term != st.Term {
		m.stop()
		m.term = st.Term
		clear(m.ended)
	}
	moves := s.MovesOf(g.ID)
	m.endOthers(moves)
	m.settle(ctx, g, moves)
	for _, mv := range moves {
		if mv.From == g.ID && mv.Phase == control.Copying && m.active[mv.Revision] == nil {
			m.begin(ctx, mv)
		}
	}
}

// stop ends all transfers; they may begin anew at once, under a higher pass.
func (m *mover) stop() {
	for rev, t := range m.active {
		t.cancel()
		delete(m.active, rev)
	}
}

// pass gives out the number of a copy: greater than that of any begun before, here
// or by an earlier leader.
func (m *mover) pass(term uint64) uint64 {
	return term<<24 | m.passes.Add(1)&(1<<24-1)
}

// endOthers ends the transfers of moves that are not copying any more.
func (m *mover) endOthers(moves []control.Move) {
	copying := make(map[uint64]bool, len(moves))
	open := make(map[uint64]bool, len(moves))
	for _, mv := range moves {
		open[mv.Revision] = true
		copying[mv.Revision] = mv.Phase == control.Copying
	}
	for rev, t := range m.active {
		if !copying[rev] {
			t.cancel()
			delete(m.active, rev)
		}
	}
	for rev := range m.ended {
		if !open[rev] {
			delete(m.ended, rev)
		}
	}
}

// begin starts the transfer of a slot.
func (m *mover) begin(ctx context.Context, mv control.Move) {
	run, cancel := context.WithCancel(ctx)
	t := &transfer{m: m, move: mv, term: m.term, cancel: cancel}
	m.active[mv.Revision] = t
	m.transfers.Go(func() {
		defer cancel()
		t.run(run)
	})
}

// seal is what seals.do does.
func (m *mover) seal(ctx context.Context, moves []bucket.Move) []error {
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	done, err := m.x.replica.Seal(ctx, moves)
	if err != nil {
		return []error{err}
	}
	errs := make([]error, len(moves))
	for i := range errs {
		if i >= len(done) || !done[i] {
			errs[i] = errRefused
		}
	}
	return errs
}

// flip is what flips.do does. The control state judges each move by itself; what
// became of them is read from it.
func (m *mover) flip(ctx context.Context, ids []control.MoveID) error {
	return m.n.propose(ctx, control.Flip{Group: m.x.parsed.Group, Epoch: m.x.parsed.Epoch, Moves: ids})
}

// controlInReach says whether the control group can be asked to flip a move now,
// as far as this node knows.
func (n *Node) controlInReach() bool {
	if n.control.Leads() {
		return true
	}
	leader := n.controlLeader()
	_, up := n.peers.Link(leader)
	return leader != "" && leader != n.self.name && up
}

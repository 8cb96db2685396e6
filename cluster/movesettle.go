package cluster

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/control"
)

// ending is one kind of entry that ends moves, with those that it is due for.
type ending struct {
	entry func(*group.Replica, context.Context, []bucket.Move) ([]bool, error)
	holds bool // the group holds the slots afterwards: who waits for them is told
	moves []control.Move
}

// settle does this group's part of the end of moves: what was flipped or cancelled
// becomes so in its log, and then the control state is told. To what is flipped
// first: it is waited for.
func (m *mover) settle(ctx context.Context, g control.Group, moves []control.Move) {
	begun := time.Now()
	own := ending{entry: (*group.Replica).Own, holds: true}
	unseal := ending{entry: (*group.Replica).Unseal, holds: true}
	forget := ending{entry: (*group.Replica).Forget}
	drop := ending{entry: (*group.Replica).Drop}
	var settled []control.MoveID
	for _, mv := range moves {
		var e *ending
		switch {
		case mv.Phase == control.Flipped && mv.To == g.ID && !mv.ToSettled:
			e = &own
		case mv.Phase == control.Flipped && mv.From == g.ID && mv.ToSettled && !mv.FromSettled:
			e = &forget
		case mv.Phase == control.Cancelled && mv.From == g.ID && !mv.FromSettled:
			e = &unseal
		case mv.Phase == control.Cancelled && mv.To == g.ID && !mv.ToSettled:
			e = &drop
		default:
			continue
		}
		if m.ended[mv.Revision] == mv.Phase {
			settled = append(settled, mv.ID())
		} else {
			e.moves = append(e.moves, mv)
		}
	}
	waited := false
	for _, e := range []*ending{&own, &unseal, &forget, &drop} {
		if !e.holds && waited {
			break // callers waited for these slots, and may for others by now: look again first
		}
		done := m.end(ctx, e)
		if e == &own && len(done) > 0 {
			m.n.metrics.moves.took(partOwn, begun)
		}
		waited = waited || e.holds && len(done) > 0
		settled = append(settled, done...)
	}
	if len(settled) > 0 && time.Since(m.reported) >= reportEvery && m.report(ctx, g, settled) {
		m.reported = time.Now()
	}
}

// end commits one entry for all moves of e and returns those for which it is done.
func (m *mover) end(ctx context.Context, e *ending) (settled []control.MoveID) {
	if len(e.moves) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleWait)
	defer cancel()
	list := make([]bucket.Move, len(e.moves))
	for i, mv := range e.moves {
		list[i] = bucket.Move{Slot: mv.Slot, Revision: mv.Revision}
	}
	done, err := e.entry(m.x.replica, ctx, list)
	if err != nil {
		m.n.log.Info("moves will be settled later", "group", m.x.parsed.Group, "error", err)
		return nil
	}
	if e.holds {
		if time.Since(m.policiesAt) < recutWithin {
			m.x.recut.Store(true)
		}
		m.n.views.fire()
	}
	for i, mv := range e.moves {
		if i < len(done) && done[i] {
			m.ended[mv.Revision] = mv.Phase
			settled = append(settled, mv.ID())
			continue
		}
		if time.Since(m.lastLog) < 5*time.Second {
			continue
		}
		info, _ := m.x.replica.Slot(mv.Slot)
		if info.Revision > mv.Revision {
			continue // a move of the past: this node has yet to hear how it ended
		}
		m.lastLog = time.Now()
		m.n.log.Error("a move cannot be settled", "group", m.x.parsed.Group, "slot", mv.Slot, "revision", mv.Revision,
			"phase", mv.Phase, "state", info.State, "of", info.Revision)
	}
	return settled
}

// report tells the control state what is settled, beside the loop, one command at a
// time: what cannot be told now is told at a later look. It says whether it began to.
func (m *mover) report(ctx context.Context, g control.Group, settled []control.MoveID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reports {
		return false
	}
	m.reports = true
	m.transfers.Go(func() {
		err := m.n.propose(ctx, control.Settled{Group: g.ID, Epoch: g.Epoch, Moves: settled})
		if err != nil && ctx.Err() == nil {
			m.n.log.Info("settled moves will be reported again", "group", g.ID, "error", err)
		}
		m.mu.Lock()
		m.reports = false
		m.mu.Unlock()
	})
	return true
}

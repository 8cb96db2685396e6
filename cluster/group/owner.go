package group

import (
	"context"
	"time"
)

// watchOwner follows who leads, and how long the owner keeps leadership once it
// has it: each time it loses it early the delay before it is given back doubles,
// after a long time it starts again from the least.
func (r *Replica) watchOwner() {
	m, owner := &r.moves, r.cfg.Owner()
	leads := owner != "" && r.leader() == owner
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case leads && m.ownerAt.IsZero():
		m.ownerAt = time.Now()
	case leads && time.Since(m.ownerAt) > 2*m.delay:
		m.delay = r.timers.OwnerDelay
	case !leads && !m.ownerAt.IsZero():
		if time.Since(m.ownerAt) <= 2*m.delay {
			m.delay = min(2*m.delay, r.timers.OwnerMax)
		}
		m.ownerAt = time.Time{}
	}
}

// returnToOwner hands leadership to the owner when it has been fit for the delay.
func (r *Replica) returnToOwner(ctx context.Context) {
	owner := r.cfg.Owner()
	if owner == "" || owner == r.cfg.ID || r.mayTransfer(owner) != nil {
		return
	}
	r.moves.mu.Lock()
	delay := r.moves.delay
	r.moves.mu.Unlock()
	if min(r.cfg.LinkUp(owner), r.lead.age()) < delay {
		return
	}
	if err := r.TransferTo(ctx, owner); err != nil {
		r.logger.Debug("cannot return leadership", "owner", owner, "error", err)
	}
}

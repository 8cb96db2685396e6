package control

// planMoves cancels what is not wished for any more, or cannot go on, and opens
// new moves up to MaxMoves.
func (p *planner) planMoves() {
	var unwished, stuck []MoveID
	old := p.outdated()
	for _, m := range p.s.Moves {
		switch {
		case m.Phase != Copying:
		case p.s.Wish == nil || p.s.Wish.Slots[m.Slot] != m.To || old(m.From, m.To):
			unwished = append(unwished, m.ID())
		case p.looksDead(m.From) || p.looksDead(m.To):
			stuck = append(stuck, m.ID())
		}
	}
	if len(unwished) > 0 {
		p.do(CancelMoves{unwished, "no longer wished for"})
	}
	if len(stuck) > 0 {
		p.do(CancelMoves{stuck, "a group has no live majority"})
	}
	if !p.frozen && p.s.Wish != nil {
		p.startMoves(old)
	}
}

// outdated tells of two groups whether the wish for slots to move from the first
// to the second is older than what is known of their owners, and will be replaced
// once the members have been the same for a while: the owner of the target has
// gone, or that of the source is back.
func (p *planner) outdated() func(from, to uint32) bool {
	home := make(map[uint32]bool)
	for _, g := range p.homes() {
		home[g.ID] = true
	}
	return func(from, to uint32) bool {
		return !home[to] || home[from] && !p.s.Wish.Keeps(from)
	}
}

func (p *planner) startMoves(old func(from, to uint32) bool) {
	works := make(map[uint32]bool)
	for _, g := range p.s.Groups {
		works[g.ID] = g.Formed && p.live(g) >= quorum(g.voters()) && g.voters() > 0
	}
	var start []Start
	room, waiting := MaxMoves-p.s.copying(), false
	for slot, to := range p.s.Wish.Slots {
		from := p.s.SlotGroup[slot]
		m := Start{uint16(slot), to}
		if from == to || !works[from] || !works[to] || old(from, to) || p.s.mayMove(m) != nil {
			continue
		}
		if waiting = len(start) >= room; waiting {
			break
		}
		start = append(start, m)
	}
	switch {
	case len(start) == 0, waiting && room < MaxMoves/4: // several at once: each command costs every node a write to its disk
	default:
		p.do(StartMoves{start})
	}
}

// looksDead says whether a group has been without a live majority for so long
// that what it has begun should not be waited for.
func (p *planner) looksDead(group uint32) bool {
	g, _ := p.s.Group(group)
	left := 0
	for _, r := range g.Replicas {
		if r.Role == Voter && !p.s.Gone(r) && p.look.Silent[r.Node] < patience {
			left++
		}
	}
	return left < quorum(g.voters())
}

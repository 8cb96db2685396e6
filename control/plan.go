package control

import (
	"slices"

	"github.com/ringlimit/ringlimit/ring"
)

// Plan returns the commands that the leader of the control group should propose
// now, in order; none when nothing is to do. Applying them, reporting what the
// groups do, and asking again leads to the wished placement from wherever one
// is; asking twice gives the same. Each would be accepted after those before it,
// and is judged again when it is applied, so that a stale or repeated proposal
// does no harm.
//
// In a group at most one step of its replicas is in flight, and none begins that
// would leave it without a live majority. At most MaxMoves slots are Copying. When
// nothing else is to do, replicas are levelled, one at a time.
// While more than a third of the nodes that are not retired are silent, only
// repairs begin: what is lost for good is replaced, and nothing else.
func Plan(s *State, look Look) []Command {
	if s.ClusterID == "" {
		return nil
	}
	if !s.Placed() {
		if n := len(s.Registered()); n > 0 && n >= s.Expect {
			return []Command{Place{}}
		}
		return nil
	}
	p := &planner{s: s, look: look}
	p.frozen = p.manyDead()
	p.planNodes()
	p.planReplication()
	for _, g := range s.Groups {
		p.planGroup(g.ID)
	}
	p.planWish()
	p.planMoves()
	p.planDissolve()
	p.planLeft()
	p.planLevel()
	return p.out
}

// planner collects commands, and the State that they lead to.
type planner struct {
	s      *State // what it was given, then with out applied
	look   Look
	frozen bool
	out    []Command
}

// do plans a command unless it would be refused, change nothing, or not be read
// by all nodes. It says whether it did.
func (p *planner) do(c Command) bool {
	if c == nil || Format(c) > p.s.reads() {
		return false
	}
	next := p.s.clone()
	if changed, err := c.apply(next); err != nil || !changed {
		return false
	}
	p.s, p.out = next, append(p.out, c)
	return true
}

// reads returns the newest format that all registered nodes read.
func (s *State) reads() int {
	least := FormatMax
	for _, n := range s.Nodes {
		if !n.Removed {
			least = min(least, max(1, n.FormatMax))
		}
	}
	return least
}

// alive says whether a node is registered and answers.
func (p *planner) alive(name string) bool {
	_, ok := p.s.registered(name)
	_, silent := p.look.Silent[name]
	return ok && !silent
}

// quiet says whether slots may move because of who is a member now.
func (p *planner) quiet() bool { return p.look.Quiet >= Hysteresis || p.s.drains() }

func (p *planner) manyDead() bool {
	total, silent := 0, 0
	for _, n := range p.s.Nodes {
		if n.Removed || n.Retired {
			continue
		}
		total++
		if !p.alive(n.Name) {
			silent++
		}
	}
	return 3*silent > total
}

// planNodes retires who is dead for long, and takes back who answers again.
func (p *planner) planNodes() {
	for _, n := range p.s.Nodes {
		silent := p.look.Silent[n.Name]
		switch {
		case n.Removed:
		case n.Retired && p.alive(n.Name):
			p.do(Unretire{n.Name, n.Incarnation})
		case !p.frozen && !p.alive(n.Name) && p.look.ReplaceAfter > 0 && silent >= p.look.ReplaceAfter:
			p.do(Retire{n.Name, n.Incarnation})
		}
	}
}

func (p *planner) planReplication() {
	if _, want := p.s.Staying(); !p.frozen && want != p.s.Replication && p.quiet() {
		p.do(SetReplication{want})
	}
}

// planLeft ends the drains that are finished.
func (p *planner) planLeft() {
	for _, n := range p.s.Nodes {
		if n.Draining && !n.Removed {
			p.do(Left{n.Name})
		}
	}
}

// planDissolve ends the groups that nobody needs any more.
func (p *planner) planDissolve() {
	if p.frozen || p.s.Wish == nil {
		return
	}
	homes := p.homes()
	for _, g := range p.s.Groups {
		if home, ok := homes[g.Owner]; !ok || home.ID != g.ID {
			p.do(Dissolve{g.ID, g.Epoch})
		}
	}
}

// homes returns the group that each node that shall own one has: the one that
// stays by the present wish, else a formed one, with the most slots.
func (p *planner) homes() map[string]Group {
	homes := make(map[string]Group)
	count := make(map[uint32]int)
	for _, g := range p.s.SlotGroup {
		count[g]++
	}
	rank := func(g Group) (rank int) {
		if p.s.keeps(g) {
			rank += 1 << 30
		}
		if g.Formed {
			rank += 1 << 29
		}
		return rank + count[g.ID]
	}
	owners := p.s.Owners()
	for _, g := range p.s.Groups {
		if _, ok := slices.BinarySearch(owners, g.Owner); !ok {
			continue
		}
		if home, ok := homes[g.Owner]; !ok || rank(g) > rank(home) {
			homes[g.Owner] = g
		}
	}
	return homes
}

// planWish gives each node that shall own slots a group, and once those have
// formed decides which slots each shall have.
func (p *planner) planWish() {
	if p.frozen || !p.quiet() {
		return
	}
	homes := p.homes()
	for _, owner := range p.s.Owners() {
		home, ok := homes[owner]
		if !ok && p.alive(owner) {
			p.do(AddGroup{owner, p.voters(owner, nil)})
		}
		if !ok || !home.Formed && !p.s.keeps(home) {
			if p.alive(owner) {
				return // its group will form soon
			}
			delete(homes, owner)
		}
	}
	if p.wishes(homes) {
		return
	}
	if wish, ok := p.wish(homes); ok {
		p.do(Rebalance{wish})
	}
}

// wishes says whether just these groups are wished for already. Without a wish
// none is needed as long as there are no others.
func (p *planner) wishes(homes map[string]Group) bool {
	for _, g := range p.s.Groups {
		home, ok := homes[g.Owner]
		isHome := ok && home.ID == g.ID
		if p.s.keeps(g) != isHome || p.s.Wish == nil && !isHome {
			return false
		}
	}
	return true
}

// wish spreads the slots over groups. Slots of a group that is to be dissolved
// move in any case, wherever its owner is.
func (p *planner) wish(homes map[string]Group) (Wish, bool) {
	var owners []string
	var w Wish
	ownerOf := make(map[uint32]string, len(homes))
	for owner, g := range homes {
		owners, w.Groups = append(owners, owner), append(w.Groups, g.ID)
		ownerOf[g.ID] = owner
	}
	slices.Sort(w.Groups)
	present := make([]string, len(p.s.SlotGroup))
	for slot, g := range p.s.SlotGroup {
		present[slot] = ownerOf[g]
	}
	next, err := ring.Plan(present, owners)
	if err != nil {
		return Wish{}, false // no owner, or more than a ring takes: things stay as they are
	}
	w.Slots = make([]uint32, len(next))
	for slot, owner := range next {
		w.Slots[slot] = homes[owner].ID
	}
	return w, true
}

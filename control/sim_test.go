package control

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// sim is a cluster in miniature: processes, raft groups that commit when a
// majority of their configuration runs, and tables that know only which slots
// they hold. Its machine is fed what the groups' leaders report and what Plan wants.
type sim struct {
	t       rapid.TB
	m, twin *Machine
	index   uint64
	started map[string]int     // incarnations of each node
	procs   map[process]bool   // those that run
	dirs    map[process]string // directory of each
	groups  map[instance]*simRaft
	look    Look
	said    func(Command, error) // hears of each command, may be nil
	past    []*State             // states a leader may still believe in, newest last
	sent    []Command            // commands that may arrive again
}

type process struct{ node, incarnation string }

type instance struct{ group, epoch uint32 }

// simRaft is one epoch of a group. What it has committed is in all its replicas:
// the table is one.
type simRaft struct {
	voters, members map[uint64]bool // members: also those without a vote
	where           map[uint64]process
	slots           map[uint16]*simSlot
}

type simSlot struct {
	state    string // "", held, sealed, complete
	revision uint64 // highest seen
	ended    uint64 // highest that was owned, forgotten, dropped or unsealed
}

func newSim(t rapid.TB) *sim {
	return &sim{
		t: t, m: New(), twin: New(), started: map[string]int{}, procs: map[process]bool{}, dirs: map[process]string{},
		groups: map[instance]*simRaft{}, look: Look{Silent: map[string]time.Duration{}, ReplaceAfter: 10 * time.Minute},
	}
}

// apply applies a command to both machines and holds the invariants of a step.
func (s *sim) apply(c Command) error {
	s.index++
	before := s.m.State()
	was := string(before.Snapshot())
	data := Encode(c)
	r, err := s.m.Apply(s.index, data)
	if err != nil {
		s.t.Fatalf("%s: %v", data, err)
	}
	if s.index%7 == 0 { // the twin lives from a snapshot now and then
		snapshot := s.twin.Snapshot()
		s.twin = New()
		if err := s.twin.Restore(snapshot); err != nil {
			s.t.Fatal(err)
		}
	}
	if _, err := s.twin.Apply(s.index, data); err != nil {
		s.t.Fatal(err)
	}
	if string(s.m.Snapshot()) != string(s.twin.Snapshot()) {
		s.t.Fatalf("%s: the machines differ", data)
	}
	checkStep(s.t, before, s.m.State(), r, was)
	if r.Changed {
		s.follow(before)
	}
	if s.said != nil {
		s.said(c, r.Err)
	}
	return r.Err
}

// follow lets the processes see the newest state: new groups form, who left ends.
func (s *sim) follow(before *State) {
	st := s.m.State()
	s.past = append(s.past[max(0, len(s.past)-20):], before)
	if !slices.Equal(before.Members(), st.Members()) {
		s.look.Quiet = 0
	}
	for _, g := range st.Groups {
		id := instance{g.ID, g.Epoch}
		x := s.groups[id]
		if x == nil {
			x = &simRaft{voters: map[uint64]bool{}, members: map[uint64]bool{}, where: map[uint64]process{}, slots: map[uint16]*simSlot{}}
			for _, r := range g.Replicas {
				x.voters[r.Serial], x.members[r.Serial] = true, true
			}
			s.groups[id] = x
		}
		for _, r := range g.Replicas {
			x.where[r.Serial] = process{r.Node, r.Incarnation}
		}
	}
	for _, n := range st.Nodes {
		if n.Removed { // so an operator said, of all that ever ran under the name
			maps.DeleteFunc(s.procs, func(p process, _ bool) bool { return p.node == n.Name })
		}
	}
	s.listen()
}

// listen brings what the control leader sees up to date.
func (s *sim) listen() {
	for _, n := range s.m.State().Nodes {
		_, silent := s.look.Silent[n.Name]
		switch runs := s.procs[process{n.Name, n.Incarnation}]; {
		case runs || n.Removed:
			delete(s.look.Silent, n.Name)
		case !silent:
			s.look.Silent[n.Name] = 0
		}
	}
	s.unsteady()
}

// unsteady forgets how long all have answered, if one does not.
func (s *sim) unsteady() {
	for _, name := range s.m.State().Members() {
		if _, silent := s.look.Silent[name]; silent {
			s.look.Steady = 0
		}
	}
}

func (s *sim) wait(d time.Duration) {
	s.look.Quiet += d
	s.look.Steady += d
	for name := range s.look.Silent {
		s.look.Silent[name] += d
	}
	s.unsteady()
}

// start starts a process of a node in a directory; those that had it locked ended.
func (s *sim) start(name, dir string, supersede bool) error {
	for p := range s.procs {
		if p.node == name && s.dirs[p] == dir {
			delete(s.procs, p)
		}
	}
	s.started[name]++
	p := process{name, fmt.Sprint(name, s.started[name])}
	s.procs[p], s.dirs[p] = true, dir
	err := s.apply(Register{
		Node:      Node{Name: name, Directory: dir, Incarnation: p.incarnation, GRPC: name + ":1", FormatMax: FormatMax},
		Supersede: supersede,
	})
	if err != nil {
		delete(s.procs, p)
	}
	s.listen()
	return err
}

// kill ends the present process of a node.
func (s *sim) kill(name string) {
	if n, ok := s.m.State().Node(name); ok {
		delete(s.procs, process{name, n.Incarnation})
	}
	s.listen()
}

// live counts the voters of a configuration that run.
func (s *sim) live(x *simRaft, voters map[uint64]bool) int {
	n := 0
	for serial := range voters {
		if s.procs[x.where[serial]] {
			n++
		}
	}
	return n
}

func (s *sim) commits(x *simRaft) bool {
	return len(x.voters) > 0 && s.live(x, x.voters) >= quorum(len(x.voters))
}

// check holds what must hold at each moment of the cluster: a slot is served in
// one place at most, whoever believes in which state.
func (s *sim) check() {
	served := map[uint16]instance{}
	for id, x := range s.groups {
		if !s.commits(x) {
			continue
		}
		for slot, c := range x.slots {
			if c.state != "held" {
				continue
			}
			if other, ok := served[slot]; ok {
				s.t.Fatalf("slot %d is held by %v and %v", slot, id, other)
			}
			served[slot] = id
		}
	}
}

// plan returns what Plan wants, and judges it.
func (s *sim) plan() []Command {
	st := s.m.State()
	s.ask(st)
	commands := Plan(st, s.look)
	for _, c := range commands {
		s.checkSafe(st, c)
	}
	return commands
}

// ask asks the replicas of groups without a leader for their configuration: it
// counts only when all that are not lost have answered.
func (s *sim) ask(st *State) {
	s.look.Configurations = map[uint32][]uint64{}
	for _, g := range st.Groups {
		x := s.groups[instance{g.ID, g.Epoch}]
		silent := slices.ContainsFunc(g.Replicas, func(r Replica) bool {
			return !st.Lost(r) && !s.procs[process{r.Node, r.Incarnation}]
		})
		if g.Formed && !s.commits(x) && !silent {
			s.look.Configurations[g.ID] = slices.Sorted(maps.Keys(x.voters))
		}
	}
}

// checkSafe holds that a step of replicas leads over configurations that live, as
// raft really has them, when what the control leader sees is true.
func (s *sim) checkSafe(st *State, c Command) {
	var id instance
	var old uint64
	switch c := c.(type) {
	case Replace:
		id, old = instance{c.Group, c.Epoch}, c.OldSerial
	case AddReplica:
		id = instance{c.Group, c.Epoch}
	case DropReplica:
		id, old = instance{c.Group, c.Epoch}, c.Serial
	default:
		return
	}
	x := s.groups[id]
	g, _ := st.Group(id.group)
	if _, busy := g.inFlight(); busy {
		return // its first step was judged
	}
	voters := map[uint64]bool{}
	for serial := range x.voters {
		r, listed := g.Replica(serial)
		if voters[serial] = true; !listed || r.Role == Missing {
			delete(voters, serial) // about to be removed
		}
	}
	if s.live(x, voters) < quorum(len(voters)) {
		s.t.Fatalf("%s: the group has no live majority", describe(c))
	}
	_, drop := c.(DropReplica)
	if voters[old] && (drop || !s.procs[x.where[old]]) {
		delete(voters, old)
		if s.live(x, voters) < quorum(len(voters)) && len(voters) > 0 {
			s.t.Fatalf("%s: no live majority without replica %d", describe(c), old)
		}
	}
}

// settle runs the cluster until nothing is left to do.
func (s *sim) settle() {
	for round := 0; ; round++ {
		if round > 2000 {
			s.t.Fatalf("it never settles: %v", s.m.State().Moves)
		}
		any := false
		for _, c := range s.plan() {
			before := s.m.State()
			if err := s.apply(c); err != nil || s.m.State() == before {
				s.t.Fatalf("Plan wants %s, but: %v", describe(c), err)
			}
			any = true
		}
		for _, id := range s.instances() {
			any = s.act(id, s.m.State()) || any
			s.check()
		}
		if !any {
			return
		}
	}
}

// instances returns all groups that ever were, in order.
func (s *sim) instances() []instance {
	var ids []instance
	for id := range s.groups {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b instance) int {
		return strings.Compare(fmt.Sprintf("%8d/%8d", a.group, a.epoch), fmt.Sprintf("%8d/%8d", b.group, b.epoch))
	})
	return ids
}

package control

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios say now into testdata")

// TestScenarios runs testdata/*.txt. A scenario is blocks of lines, "----", and
// what they say, each block ended by an empty line. The lines:
//
//	found [slots=16] [groups=0] [expect=3]   the first command
//	start NODE [dir=D] [supersede]           NODE starts, with its next incarnation, and registers
//	late NODE N                              its incarnation N registers, too late
//	kill NODE                                its process ends
//	wait SECONDS                             time passes for the control leader
//	remove NODE | drain NODE | undrain NODE | left NODE | place | replication N
//	form G E | reform G E | promoted G E SERIAL | dropped G E SERIAL
//	revert G E SERIAL KEEP | miss G E SERIAL | replace G E SERIAL NODE | add G E NODE | drop G E SERIAL
//	group NODE NODE…                         a group for the first node
//	dissolve G E | epoch G E NODE… [of=SERIAL,…]
//	start_moves SLOT:GROUP… | flip G E SLOT:REVISION… | cancel SLOT:REVISION…
//	settled G E SLOT:REVISION… | born G E SLOT…
//	form                                     every group that is not formed forms
//	next                                     says what Plan wants
//	step                                     applies what Plan wants, once, and says it
//	settle                                   steps, and lets groups do their part, until all is quiet
//	show                                     says what the groups are
//	slots                                    says how many slots each group has
//	replicas                                 says how many each node has, without those that leave
//	moves                                    says what moves are open, and what births
//	nodes                                    says who drains, is retired, was removed
//	moved                                    says how many slots have other groups than when it was said last
//
// Refusals are said too.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := newScript(t).run(string(b))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(strings.Split(string(b), "\n"), strings.Split(got, "\n")); d != "" && !*rewrite {
				t.Error(d)
			}
		})
	}
}

// script runs one scenario.
type script struct {
	*sim
	t     testing.TB
	out   strings.Builder
	slots []uint32 // groups of the slots when moved was said last
}

func newScript(t testing.TB) *script {
	s := &script{sim: newSim(t), t: t}
	s.said = func(c Command, err error) {
		if err != nil {
			fmt.Fprintf(&s.out, "refused: %v\n", err)
		}
	}
	return s
}

// run returns the scenario with what it says now.
func (s *script) run(text string) string {
	var out strings.Builder
	for _, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		in, _, _ := strings.Cut(block+"\n", "----\n")
		s.out.Reset()
		commands := 0
		for line := range strings.Lines(in) {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				s.line(strings.Fields(line))
				commands++
			}
		}
		out.WriteString(in)
		if commands > 0 {
			out.WriteString("----\n" + s.out.String())
		}
		out.WriteString("\n")
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

func (s *script) line(words []string) {
	switch words[0] {
	case "next":
		for _, c := range Plan(s.m.State(), s.look) {
			fmt.Fprintln(&s.out, describe(c))
		}
	case "step":
		s.step()
	case "settle":
		s.settle()
	case "show":
		s.show()
	case "slots":
		for _, g := range s.m.State().Groups {
			fmt.Fprintf(&s.out, "group %d of %s: %d\n", g.ID, g.Owner, s.m.State().CountSlots(g.ID))
		}
	case "replicas":
		for _, name := range s.m.State().Registered() {
			fmt.Fprintf(&s.out, "%s %d\n", name, s.m.State().CountReplicas(name))
		}
	case "moves":
		s.showMoves()
	case "nodes":
		s.showNodes()
	case "moved":
		s.showMoved()
	case "kill":
		s.kill(words[1])
	case "wait":
		seconds, err := strconv.Atoi(words[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.wait(time.Duration(seconds) * time.Second)
	case "start":
		s.startNode(words[1], words[2:])
	case "form":
		if len(words) == 1 {
			s.formAll()
			return
		}
		fallthrough
	default:
		s.apply(s.command(words))
	}
}

// startNode reads the options of start.
func (s *script) startNode(name string, options []string) {
	dir, supersede := "d-"+name, false
	for _, o := range options {
		if d, ok := strings.CutPrefix(o, "dir="); ok {
			dir = d
		}
		supersede = supersede || o == "supersede"
	}
	s.start(name, dir, supersede)
}

func (s *script) step() {
	for _, c := range s.plan() {
		fmt.Fprintln(&s.out, describe(c))
		s.apply(c)
	}
}

func (s *script) formAll() {
	for _, g := range s.m.State().Groups {
		if !g.Formed {
			s.apply(Form{g.ID, g.Epoch})
		}
	}
}

// settle does what a healthy cluster does, until nothing is left to do, and says
// what Plan wanted; moves only in sum.
func (s *script) settle() {
	quiet := s.said
	moves := 0
	s.said = func(c Command, err error) {
		quiet(c, err)
		switch c := c.(type) {
		case StartMoves:
			moves += len(c.Moves)
		case Form, Promoted, Dropped, Flip, Settled, Born:
		default:
			fmt.Fprintln(&s.out, describe(c))
		}
	}
	s.sim.settle()
	s.said = quiet
	if moves > 0 {
		fmt.Fprintf(&s.out, "%d moves\n", moves)
	}
}

func (s *script) showMoves() {
	for _, m := range s.m.State().Moves {
		fmt.Fprintf(&s.out, "slot %d revision %d: %d → %d %s", m.Slot, m.Revision, m.From, m.To, m.Phase)
		if m.FromSettled {
			fmt.Fprint(&s.out, ", source settled")
		}
		if m.ToSettled {
			fmt.Fprint(&s.out, ", target settled")
		}
		fmt.Fprintln(&s.out)
	}
	for _, g := range s.m.State().Groups {
		if len(g.Births) > 0 {
			fmt.Fprintf(&s.out, "group %d epoch %d: births %v revision %d, survivors", g.ID, g.Epoch, g.Births, g.BirthRevision)
			for _, r := range g.Survivors {
				fmt.Fprintf(&s.out, " %s#%d", r.Incarnation, r.Serial)
			}
			fmt.Fprintln(&s.out)
		}
	}
}

func (s *script) showNodes() {
	for _, n := range s.m.State().Nodes {
		fmt.Fprintf(&s.out, "%s %s", n.Name, n.Incarnation)
		for _, f := range []struct {
			is   bool
			text string
		}{{n.Removed, " removed"}, {n.Draining, " draining"}, {n.Retired, " retired"}} {
			if f.is {
				fmt.Fprint(&s.out, f.text)
			}
		}
		for _, p := range n.Unsure {
			fmt.Fprintf(&s.out, " unsure of %s in %s", p.Incarnation, p.Directory)
		}
		fmt.Fprintln(&s.out)
	}
}

func (s *script) showMoved() {
	now := s.m.State().SlotGroup
	if s.slots != nil {
		n := 0
		for slot := range now {
			if now[slot] != s.slots[slot] {
				n++
			}
		}
		fmt.Fprintf(&s.out, "%d of %d slots moved\n", n, len(now))
	}
	s.slots = now
}

func (s *script) show() {
	st := s.m.State()
	fmt.Fprintf(&s.out, "revision %d, replication %d, next serial %d\n", st.Revision, st.Replication, st.NextSerial)
	for _, g := range st.Groups {
		fmt.Fprintf(&s.out, "group %d epoch %d owner %s", g.ID, g.Epoch, g.Owner)
		if !g.Formed {
			fmt.Fprint(&s.out, " not formed")
		}
		fmt.Fprint(&s.out, ":")
		for _, r := range g.Replicas {
			fmt.Fprintf(&s.out, " %s#%d", r.Incarnation, r.Serial)
			if r.Role != Voter {
				fmt.Fprintf(&s.out, "(%s)", r.Role)
			}
		}
		fmt.Fprintln(&s.out)
	}
}

// describe is a command in the words of the scenarios.
func describe(c Command) string {
	switch c := c.(type) {
	case Reform:
		return fmt.Sprintf("reform %d %d", c.Group, c.Epoch)
	case Replace:
		return fmt.Sprintf("replace %d %d %d %s", c.Group, c.Epoch, c.OldSerial, c.Node)
	case Revert:
		return fmt.Sprintf("revert %d %d %d %d", c.Group, c.Epoch, c.Serial, c.Keep)
	case Miss:
		return fmt.Sprintf("miss %d %d %d", c.Group, c.Epoch, c.Serial)
	case AddGroup:
		return "group " + strings.Join(c.Nodes, " ")
	case Dissolve:
		return fmt.Sprintf("dissolve %d %d", c.Group, c.Epoch)
	case AddReplica:
		return fmt.Sprintf("add %d %d %s", c.Group, c.Epoch, c.Node)
	case DropReplica:
		return fmt.Sprintf("drop %d %d %d", c.Group, c.Epoch, c.Serial)
	case SetReplication:
		return fmt.Sprintf("replication %d", c.Replicas)
	case Left:
		return "left " + c.Name
	case Retire:
		return "retire " + c.Name
	case Unretire:
		return "unretire " + c.Name
	case NewEpoch:
		return fmt.Sprintf("epoch %d %d %s", c.Group, c.Epoch, strings.Join(c.Nodes, " "))
	case Rebalance:
		return fmt.Sprintf("rebalance %d", c.Wish.Groups)
	case StartMoves:
		return fmt.Sprintf("start_moves %d", c.Moves)
	case CancelMoves:
		return fmt.Sprintf("cancel %d: %s", c.Moves, c.Reason)
	default:
		return c.kind()
	}
}

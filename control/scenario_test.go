package control

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios say now into testdata")

// TestScenarios runs testdata/*.txt. A scenario is blocks of lines, "----", and
// what they say, each block ended by an empty line. The lines:
//
//	found [slots=16] [groups=0] [expect=3]   the first command
//	start NODE [dir=D] [supersede]           NODE starts, with its next incarnation, and registers
//	late NODE N                              its incarnation N registers, too late
//	remove NODE | place
//	form G E | reform G E | promoted G E SERIAL | dropped G E SERIAL
//	miss G E SERIAL | replace G E SERIAL NODE
//	form                                     every group that is not formed forms
//	next                                     says what Next wants
//	step                                     applies what Next wants, once, and says it
//	settle                                   steps, and lets groups form, promote and drop, until all is quiet
//	show                                     says what the groups are
//	slots                                    says how many slots each group has
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

// script runs one scenario on two machines, which must agree.
type script struct {
	t       testing.TB
	m, twin *Machine
	index   uint64
	started map[string]int // incarnations of each node
	out     strings.Builder
}

func newScript(t testing.TB) *script {
	return &script{t: t, m: New(), twin: New(), started: map[string]int{}}
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
		for _, c := range Next(s.m.State()) {
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
			fmt.Fprintf(&s.out, "group %d of %s: %d\n", g.ID, g.Owner, len(s.m.State().SlotsOf(g.ID)))
		}
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

// command reads a line that is a command.
func (s *script) command(words []string) Command {
	option := func(name string, or int) int {
		for _, w := range words {
			if v, ok := strings.CutPrefix(w, name+"="); ok {
				n, err := strconv.Atoi(v)
				if err != nil {
					s.t.Fatal(err)
				}
				return n
			}
		}
		return or
	}
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(words[i], 10, 64)
		if err != nil {
			s.t.Fatalf("%v: %v", words, err)
		}
		return n
	}
	group := func() (uint32, uint32) { return uint32(number(1)), uint32(number(2)) }
	switch words[0] {
	case "found":
		c := founding()
		c.Slots, c.Groups, c.Expect = option("slots", 16), option("groups", 0), option("expect", 3)
		return c
	case "start":
		s.started[words[1]]++
		return s.register(words[1], s.started[words[1]], words[2:])
	case "late":
		return s.register(words[1], int(number(2)), nil)
	case "remove":
		return Remove{words[1]}
	case "place":
		return Place{}
	case "form":
		g, e := group()
		return Form{g, e}
	case "reform":
		g, e := group()
		return Reform{g, e}
	case "replace":
		g, e := group()
		return Replace{g, e, number(3), words[4]}
	case "promoted":
		g, e := group()
		return Promoted{g, e, number(3)}
	case "dropped":
		g, e := group()
		return Dropped{g, e, number(3)}
	case "miss":
		g, e := group()
		return Miss{g, e, number(3)}
	}
	s.t.Fatalf("unknown line %v", words)
	return nil
}

func (s *script) register(name string, incarnation int, options []string) Command {
	c := Register{Node: Node{Name: name, Directory: "d-" + name, Incarnation: fmt.Sprintf("%s%d", name, incarnation), GRPC: name + ":1", FormatMax: 1}}
	for _, o := range options {
		if dir, ok := strings.CutPrefix(o, "dir="); ok {
			c.Node.Directory = dir
		}
		c.Supersede = c.Supersede || o == "supersede"
	}
	return c
}

// apply applies a command to both machines and says a refusal.
func (s *script) apply(c Command) {
	s.index++
	before := s.m.State()
	was := string(before.Snapshot())
	r, err := s.m.Apply(s.index, Encode(c))
	twin, err2 := s.twin.Apply(s.index, Encode(c))
	if err != nil || err2 != nil {
		s.t.Fatalf("%s: %v, %v", describe(c), err, err2)
	}
	if (r.Err == nil) != (twin.Err == nil) || r.Changed != twin.Changed || string(s.m.Snapshot()) != string(s.twin.Snapshot()) {
		s.t.Fatalf("%s: the machines differ", describe(c))
	}
	checkStep(s.t, before, s.m.State(), r, was)
	if r.Err != nil {
		fmt.Fprintf(&s.out, "refused: %v\n", r.Err)
	}
}

func (s *script) step() {
	for _, c := range Next(s.m.State()) {
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

// settle does what a healthy cluster does, until nothing is left to do.
func (s *script) settle() {
	for range 100 {
		before := s.m.State()
		s.step()
		s.formAll()
		for _, g := range s.m.State().Groups {
			for _, r := range g.Replicas {
				switch r.Role {
				case Joining:
					if !s.m.State().Gone(r) {
						s.apply(Promoted{g.ID, g.Epoch, r.Serial})
					}
				case Leaving:
					s.apply(Dropped{g.ID, g.Epoch, r.Serial})
				}
			}
		}
		if s.m.State() == before {
			return
		}
	}
	s.t.Fatal("it never settles")
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
	case Miss:
		return fmt.Sprintf("miss %d %d %d", c.Group, c.Epoch, c.Serial)
	default:
		return c.kind()
	}
}

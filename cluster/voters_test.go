package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// members reads "a*=v b=v,dead c=n,behind d=-": * is the leader; v votes, n does
// not, - is no member; and words on its state.
func members(text string) []controlMember {
	var out []controlMember
	for word := range strings.FieldsSeq(text) {
		id, rest, _ := strings.Cut(word, "=")
		m := controlMember{registered: true, alive: true, caughtUp: true}
		m.id, m.self = strings.TrimSuffix(id, "*"), strings.HasSuffix(id, "*")
		kind, words, _ := strings.Cut(rest, ",")
		m.voter, m.member = kind == "v", kind != "-"
		for w := range strings.SplitSeq(words, ",") {
			switch w {
			case "dead":
				m.alive = false
			case "behind":
				m.caughtUp = false
			case "stranger":
				m.registered = false
			case "draining":
				m.leaving = true
			case "retired":
				m.retired = true
			}
		}
		out = append(out, m)
	}
	return out
}

func TestControlVotersStepByStep(t *testing.T) {
	for _, c := range []struct {
		name, members string
		want          int
		steps         string
	}{
		{"grow", "a*=v b=- c=-", 3, "add b, add c, promote b, promote c"},
		{"two nodes: one voter", "a*=v b=n", 3, "nothing"},
		{"one of three to come is behind", "a*=v b=n c=n,behind", 3, "nothing"},
		{"five", "a*=v b=n c=n d=n e=n", 5, "promote b, promote c, promote d, promote e"},
		{"four nodes of five voters", "a*=v b=n c=n d=n", 5, "promote b, promote c"},
		{"a dead voter keeps its vote", "a*=v b=v c=v,dead d=n", 3, "nothing"},
		{"a retired voter is replaced", "a*=v b=v c=v,dead,retired d=n", 3, "demote c, promote d"},
		{"a retired voter nobody can follow", "a*=v b=v c=v,dead,retired", 3, "nothing"},
		{"two retired of three: no majority", "a*=v b=v,dead,retired c=v,dead,retired d=n", 3, "nothing"},
		{"a draining voter", "a*=v b=v c=v,draining d=n", 3, "promote d, demote c"},
		{"a draining leader", "a*=v,draining b=v c=v d=n", 3, "promote d, hand over to b"},
		{"draining with nobody ready", "a*=v b=v c=v,draining d=n,behind", 3, "nothing"},
		{"three to two", "a*=v b=v c=v,draining", 3, "demote c, demote b"},
		{"two to one, the leader goes", "a*=v,draining b=v", 3, "hand over to b"},
		{"one of one voter drains", "a*=v,draining b=n", 3, "promote b, hand over to b"},
		{"removed voter", "a*=v b=v c=v,dead,stranger", 3, "remove c, demote b"},
		{"removed voter comes back", "a*=v b=n c=n c2=n,dead,stranger", 3, "remove c2, promote b, promote c"},
		{"removed of five", "a*=v b=v c=v,dead,stranger d=n e=n", 3, "remove c, promote d"},
		{"a draining voter that died", "a*=v b=v c=v,draining,dead d=n", 3, "demote c, promote d"},
	} {
		var got []string
		for m := members(c.members); len(got) < 10; {
			s := nextVoterStep(m, c.want)
			if s.kind == voterNone && len(got) > 0 {
				break
			}
			got = append(got, s.String())
			if s.kind == voterNone || s.kind == voterHandOver {
				break
			}
			do(&m, s)
		}
		if all := strings.Join(got, ", "); all != c.steps {
			t.Errorf("%s: %s: got %q, want %q", c.name, c.members, all, c.steps)
		}
	}
}

// do carries a step out.
func do(members *[]controlMember, s voterStep) {
	for i := range *members {
		m := &(*members)[i]
		if m.id != s.id {
			m.self = m.self && s.kind != voterHandOver
			continue
		}
		switch s.kind {
		case voterAdd:
			m.member = true
		case voterRemove:
			m.member, m.voter = false, false
		case voterPromote:
			m.voter = true
		case voterDemote:
			m.voter = false
		case voterHandOver:
			m.self = true
		}
	}
}

func TestControlVotersAlwaysHaveALiveMajorityAndSettle(t *testing.T) {
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var m []controlMember
		voters, live := 0, 0
		for i := range 1 + r.IntN(8) {
			c := controlMember{
				id: fmt.Sprint(i), member: r.IntN(4) > 0, registered: r.IntN(6) > 0, leaving: r.IntN(6) == 0,
				alive: r.IntN(4) > 0, caughtUp: r.IntN(4) > 0,
			}
			c.voter = c.member && r.IntN(2) == 0
			c.retired = !c.alive && r.IntN(2) == 0
			if c.voter {
				voters++
				if c.alive {
					live++
					c.self = live == 1 && c.registered
				}
			}
			m = append(m, c)
		}
		if live < voters/2+1 {
			continue
		}
		start := fmt.Sprint(m)
		steps := 0
		for ; ; steps++ {
			s := nextVoterStep(m, 3)
			if s.kind == voterNone {
				break
			}
			if steps > 40 {
				t.Fatalf("seed %d: no end from %s", seed, start)
			}
			do(&m, s)
			voters, live := 0, 0
			for _, c := range m {
				if c.voter {
					voters++
					if c.alive {
						live++
					}
				}
			}
			if voters == 0 || live < voters/2+1 {
				t.Fatalf("seed %d: %s leaves %d live of %d voters, from %s", seed, s, live, voters, start)
			}
		}
	}
}

package cluster

import (
	"cmp"
	"slices"
	"strings"
)

// controlMember is one replica of the control group, or a registered node whose
// replica is not a member yet, as the leader of the group sees it.
type controlMember struct {
	id         string
	self       bool // the leader that judges
	member     bool // in raft's configuration
	voter      bool
	registered bool // the node of this directory is registered; otherwise it is gone for good
	leaving    bool // draining: its vote goes to another
	retired    bool // dead for --replace-after: its vote goes to another if there is one
	alive      bool
	caughtUp   bool // has applied what this leader has
}

// voterStep is one change of the control group's members.
type voterStep struct {
	kind voterKind
	id   string
}

type voterKind uint8

const (
	voterNone     voterKind = iota
	voterAdd                // a new member without a vote
	voterRemove             // out of the group
	voterPromote            // gets a vote
	voterDemote             // loses it, and follows on
	voterHandOver           // the leadership goes to id: this leader's vote is next to go
)

func (s voterStep) String() string {
	word := [...]string{"nothing", "add", "remove", "promote", "demote", "hand over to"}[s.kind]
	return strings.TrimRight(word+" "+s.id, " ")
}

// nextVoterStep says what brings the control group nearer to an odd number of
// voters, at most want, on nodes that are there to stay. Each change alone passes
// through an even number, so one that leaves an odd number begins only if the
// next one can follow; and none leaves voters without a live majority.
//
// A dead voter goes before its successor comes, a live one after: the majority
// then never counts on more dead voters than it must. A dead voter that nobody can
// follow keeps its vote: it may come back.
func nextVoterStep(members []controlMember, want int) voterStep {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b controlMember) int { return cmp.Compare(a.id, b.id) })
	t := countVoters(members, want)
	for _, pick := range []func(ballot) voterStep{strangersGo, newcomersFollow, deadMakeWay, successorsCome, surplusGoes} {
		if s := pick(t); s.kind != voterNone {
			return s
		}
	}
	return voterStep{}
}

// ballot is what the steps are judged by.
type ballot struct {
	members      []controlMember // by id
	voters, live int             // live ones of the voters
	fit          int             // voters that are to stay
	target       int             // odd: how many of them there should be
	candidates   []controlMember // fit to get a vote now
}

func countVoters(members []controlMember, want int) ballot {
	t := ballot{members: members}
	stay := 0
	for _, m := range members {
		if m.registered && !m.leaving {
			stay++
		}
		switch {
		case m.voter:
			t.voters++
			if m.alive {
				t.live++
			}
			if m.fit() {
				t.fit++
			}
		case m.member && m.fit() && m.alive && m.caughtUp:
			t.candidates = append(t.candidates, m)
		}
	}
	t.target = oddVoters(want, stay)
	return t
}

// oddVoters is how many voters there are to be on nodes that are there to stay: an
// odd number, at most want.
func oddVoters(want, stay int) int {
	n := min(want, stay)
	if n%2 == 0 {
		n--
	}
	return n
}

func (m controlMember) fit() bool { return m.registered && !m.leaving && !m.retired }

// mayLose says whether the voters without m have a live majority.
func (t ballot) mayLose(m controlMember) bool {
	live := t.live
	if m.alive {
		live--
	}
	return live >= (t.voters-1)/2+1
}

// mayGain says whether the voters and one live one more have a live majority.
func (t ballot) mayGain() bool { return t.live+1 >= (t.voters+1)/2+1 }

// strangersGo removes replicas of directories that are gone for good.
func strangersGo(t ballot) voterStep {
	for _, m := range t.members {
		if !m.registered && m.member && !m.self && (!m.voter || t.mayLose(m)) {
			return voterStep{voterRemove, m.id}
		}
	}
	return voterStep{}
}

// newcomersFollow adds the replicas of registered nodes without a vote.
func newcomersFollow(t ballot) voterStep {
	for _, m := range t.members {
		if m.registered && !m.member && m.alive {
			return voterStep{voterAdd, m.id}
		}
	}
	return voterStep{}
}

// deadMakeWay takes the vote of a dead node that is not to stay, if there is a
// candidate for its place.
func deadMakeWay(t ballot) voterStep {
	for _, m := range t.members {
		if m.voter && !m.fit() && !m.alive && len(t.candidates) > 0 && t.mayLose(m) {
			return voterStep{voterDemote, m.id}
		}
	}
	return voterStep{}
}

// successorsCome gives votes, while there are fewer fit voters than there should be.
func successorsCome(t ballot) voterStep {
	if t.fit >= t.target || len(t.candidates) == 0 || !t.mayGain() {
		return voterStep{}
	}
	odd := t.voters%2 == 1
	if odd && t.voters >= t.fit+1 && t.replaceable() {
		return voterStep{voterPromote, t.candidates[0].id} // then the leaving one goes
	}
	if odd && (t.target-t.fit < 2 || len(t.candidates) < 2) {
		return voterStep{}
	}
	return voterStep{voterPromote, t.candidates[0].id}
}

// replaceable says whether a live voter waits for a successor.
func (t ballot) replaceable() bool {
	return slices.ContainsFunc(t.members, func(m controlMember) bool { return m.voter && m.leaving && m.alive })
}

// surplusGoes takes votes that are too many: of leaving nodes first, then of dead
// ones, of this leader last.
func surplusGoes(t ballot) voterStep {
	if t.voters <= t.target || t.fit < t.target {
		return voterStep{}
	}
	going := slices.Clone(t.members)
	going = slices.DeleteFunc(going, func(m controlMember) bool { return !m.voter || !t.mayLose(m) })
	slices.SortStableFunc(going, func(a, b controlMember) int {
		return cmp.Or(-compare(a.leaving, b.leaving), -compare(a.retired, b.retired), compare(a.alive, b.alive), compare(a.self, b.self), -cmp.Compare(a.id, b.id))
	})
	if len(going) == 0 {
		return voterStep{}
	}
	if g := going[0]; !g.self {
		return voterStep{voterDemote, g.id}
	}
	for _, m := range t.members {
		if m.voter && m.fit() && m.alive && !m.self {
			return voterStep{voterHandOver, m.id}
		}
	}
	return voterStep{}
}

// compare orders false before true.
func compare(a, b bool) int { return int(flag(a)) - int(flag(b)) }

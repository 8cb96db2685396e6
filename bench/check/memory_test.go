package check

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// past is what happened to nodes, one word after the other, a second each: a- is emptied,
// a+ is full again, abc are the voters of group 1, ! is its new epoch.
func past(words string) *Setup {
	m := &Memory{}
	s := &Setup{Memory: m}
	for i, w := range strings.Fields(words) {
		at := time.Duration(i+1) * time.Second
		switch name := w[:1]; {
		case w == "!":
			s.Losses = append(s.Losses, Loss{1, uint32(len(s.Losses) + 2), Span{To: at}})
		case strings.HasSuffix(w, "-"):
			m.Lose(name, at)
		case strings.HasSuffix(w, "+"):
			m.Regained(at, at, []string{name})
		default:
			m.Voters(1, strings.Split(w, ""), at)
		}
	}
	return s
}

func TestNeedlessEpochsAreFound(t *testing.T) {
	for _, words := range []string{
		"abc !",                  // nobody had died
		"abc a- !",               // one of three
		"abc a- a+ b- !",         // one after the other
		"abc a- bc !",            // its replica is being made anew
		"abc a- bc bcd !",        // elsewhere
		"abc d- e- !",            // others died
		"abcde a- b- !",          // two of five
		"abc ! a- b-",            // too early
		"abc a- b- ! a+ b+ !",    // once more than was lost
		"abc a- b- ! a+ b+ c- !", // and then for one
		"a ab abc a- !",          // one of three, that was one alone before
	} {
		if v := Epochs(past(words), nil); len(v.Findings) != 1 || v.Checked != 1 {
			t.Errorf("%s: found %v", words, v.Findings)
		}
	}
}

func TestNeededEpochsAreLeftAlone(t *testing.T) {
	for _, words := range []string{
		"abc", "abc a- a+ b- b+",
		"abc a- b- !",
		"abc a- b- a+ b+ !", // somebody believed in a majority that had forgotten
		"abc a- bc b- !",    // before the replica was made anew
		"abc a- bc bcd d- b- !",
		"abc a- b- ! a+ b+ c- a- !",
		"a a- !", "ab a- !", "a ab b- !",
		"abcde a- b- c- !",
		"abc bcd b- d- !",
		"abc c- b- bcd !", // a vote that was seen late
	} {
		if v := Epochs(past(words), nil); len(v.Findings) > 0 || v.Checked != 1 {
			t.Errorf("%s: %v", words, v.Findings)
		}
	}
	if v := Epochs(&Setup{Losses: []Loss{{1, 2, Span{To: time.Second}}}}, nil); v.Checked > 0 || v.Findings != nil {
		t.Errorf("without knowledge: %+v", v)
	}
	if v := Epochs(&Setup{Memory: &Memory{}, Losses: []Loss{{1, 2, Span{To: time.Second}}}}, nil); len(v.Doubts) != 1 || v.Findings != nil {
		t.Errorf("of a group that nobody saw: %+v", v)
	}
}

// TestEpochsOfRandomPasts: a group of three on five nodes whose processes end and come back
// at random, that gets a new epoch whenever, and only when, two of its nodes are empty.
func TestEpochsOfRandomPasts(t *testing.T) {
	epochs := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 7))
		voters, words := []string{"a", "b", "c"}, []string{"abc"}
		var empty []string // since the last new epoch, of the voters
		for range 12 {
			n := voters[r.IntN(3)]
			switch {
			case r.IntN(3) == 0 && len(empty) == 0: // it moves
				spare := slices.DeleteFunc([]string{"a", "b", "c", "d", "e"}, func(x string) bool { return slices.Contains(voters, x) })
				voters[r.IntN(3)] = spare[r.IntN(2)]
				words = append(words, strings.Join(slices.Sorted(slices.Values(voters)), ""))
			case slices.Contains(empty, n):
				empty = slices.DeleteFunc(empty, func(x string) bool { return x == n })
				words = append(words, n+"+")
			default:
				empty = append(empty, n)
				if words = append(words, n+"-"); len(empty) == 2 {
					epochs++
					words, empty = append(words, "!", empty[0]+"+", empty[1]+"+"), nil
				}
			}
		}
		if v := Epochs(past(strings.Join(words, " ")), nil); len(v.Findings) > 0 {
			t.Fatal(words, v.Findings)
		}
		if v := Epochs(past(strings.Join(append(words, "!"), " ")), nil); len(v.Findings) != 1 {
			t.Fatal(fmt.Sprint(words, " and one more: "), v.Findings)
		}
	}
	if epochs < 1000 {
		t.Errorf("%d new epochs in all", epochs)
	}
}

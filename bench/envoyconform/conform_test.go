package main

import (
	"os"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
)

func TestMain(m *testing.M) {
	logrus.SetLevel(logrus.FatalLevel)
	m.Run()
}

// TestAnswersAreThoseOfTheReferenceOrDocumented: and each documented difference is met,
// so that none stands there for nothing.
func TestAnswersAreThoseOfTheReferenceOrDocumented(t *testing.T) {
	s, err := run(1_000_001, 500)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.faults {
		t.Error(f)
	}
	for d, n := range s.why {
		if n == 0 {
			t.Errorf("no case needs it: %s", toldDifferences[d])
		}
	}
	if s.equal < s.cases/10 || s.total.alike < s.total.answers/2 {
		t.Errorf("%d of %d cases and %d of %d answers are equal: what is generated is nothing but differences", s.equal, s.cases, s.total.alike, s.total.answers)
	}
}

// TestAnUnknownDifferenceIsSeen: a model that lacks one of them is no explanation.
func TestAnUnknownDifferenceIsSeen(t *testing.T) {
	r, err := newReference()
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	for seed := uint64(1); ; seed++ {
		c := generate(seed)
		o, err := play(c, r)
		if err != nil {
			t.Fatal(err)
		}
		if o.refused || !o.why.has(deniedUncounted) {
			continue
		}
		mine, err := newOurs(c.files(), c.algorithm)
		if err != nil {
			t.Fatal(err)
		}
		lacking := allOfThem.without(deniedUncounted)
		m, seen := newModel(c, mine.index, lacking), false
		for i := range c.asks {
			got, err := read(mine.ask(&c.asks[i]))
			if err != nil {
				t.Fatal(err)
			}
			seen = seen || !same(got, m.answer(&c.asks[i]), lacking)
		}
		if !seen {
			t.Errorf("seed %d", seed)
		}
		return
	}
}

// TestEveryDifferenceIsInTheDocs: the rows of its table are those of the model.
func TestEveryDifferenceIsInTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| difference |")
	table, _, _ = strings.Cut(table, "\n\n")
	if rows := strings.Count(table, "\n| "); rows != len(toldDifferences) {
		t.Errorf("docs/envoy.md has %d differences, want %d", rows, len(toldDifferences))
	}
	for _, text := range toldDifferences {
		if !strings.Contains(table, "\n| "+text+" |") {
			t.Errorf("docs/envoy.md does not tell: %s", text)
		}
	}
}

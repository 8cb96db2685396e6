package main

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

func TestChangesOfLeaderAreCountedByTerms(t *testing.T) {
	at := func(ret time.Duration, group uint32, term uint64) record {
		return record{ret: ret, ans: client.Decision{Group: group, Term: term, Index: 1}}
	}
	recs := []record{
		at(5, 1, 2), at(9, 1, 2), at(20, 1, 4), at(18, 1, 4), // a term nobody won lies between
		at(19, 1, 2),             // an old leader's answer, late
		at(7, 2, 3), at(8, 2, 3), // calm
		at(30, 1, 5),
		{ret: 40, ans: client.Decision{Group: 2, Term: 9, Uncommitted: true}},
		{ret: 41, err: errors.New("deadline")},
	}
	changes := changesOfLeader(map[uint32]uint64{1: 2, 2: 3}, recs)
	if want := []change{{18, 1}, {30, 1}}; !slices.Equal(changes, want) {
		t.Errorf("changes %v, want %v", changes, want)
	}
	if changes := changesOfLeader(map[uint32]uint64{1: 1, 2: 3}, recs); len(changes) != 3 {
		t.Errorf("a change before the first answer: %v", changes)
	}
	if mostWithin(changes, 12) != 1 || mostWithin(changes, 13) != 2 || mostWithin(nil, 13) != 0 {
		t.Errorf("most within: %d, %d", mostWithin(changes, 12), mostWithin(changes, 13))
	}
}

func TestCalmRoundsAllowNoChangeOfLeader(t *testing.T) {
	if n := allowed(flapping{calm: true}, 5*time.Minute); n != 0 {
		t.Errorf("calm: %d", n)
	}
	if n := allowed(flapping{}, 5*time.Minute); n != 31 {
		t.Errorf("all links for 5 minutes: %d", n)
	}
	if !sameLeaders(layout{owners: map[uint32]string{1: "a"}, leaders: map[uint32]string{1: "a"}}) ||
		sameLeaders(layout{owners: map[uint32]string{1: "a", 2: "b"}, leaders: map[uint32]string{1: "a", 2: "a"}}) {
		t.Error("owners and leaders are compared wrongly")
	}
}

// TestFlapsLeaveAllHealed: each state lasts as long as it should, and the last is open.
func TestFlapsLeaveAllHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, last := time.Now(), time.Now()
		var states []bool
		cuts, err := flapFor(t.Context(), time.Minute, func(open bool) error {
			if d := time.Since(last); len(states) > 0 && (d > flapTo || d < flapFrom && time.Since(start) < time.Minute) {
				t.Errorf("state %d lasted %v", len(states), d)
			}
			last, states = time.Now(), append(states, open)
			return nil
		})
		if err != nil || cuts < 10 || !states[len(states)-1] || states[0] || time.Since(start) != time.Minute {
			t.Errorf("%d cuts in %v, states %v: %v", cuts, time.Since(start), states, err)
		}
		broken := errors.New("broken")
		if _, err := flapFor(t.Context(), time.Minute, func(bool) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("an error of a cut is lost: %v", err)
		}
	})
}

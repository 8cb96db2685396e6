package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
)

func TestRateBounds(t *testing.T) {
	r := rate{perSecond: 10, burst: 100}
	cases := []struct {
		took        time.Duration
		most, least int
	}{
		{0, 100, 0},
		{time.Second, 110, 9}, // a clock 200 ppm slow has not quite made the tenth
		{1050 * time.Millisecond, 110, 10},
		{time.Minute, 700, 100},
	}
	for _, c := range cases {
		if most, least := r.most(c.took), r.least(c.took, 0); most != c.most || least != c.least {
			t.Errorf("%v: %d … %d, want %d … %d", c.took, least, most, c.least, c.most)
		}
	}
	if got := r.least(3*time.Second, replicationDelay); got != 27 {
		t.Errorf("3 s less a replication delay: %d, want 27", got)
	}
}

func TestQuantile(t *testing.T) {
	d := []time.Duration{4, 1, 3, 2}
	if quantile(nil, 0.5) != 0 || quantile(d, 0.5) != 3 || quantile(d, 1) != 4 || quantile(d, 0) != 1 {
		t.Error("wrong quantiles")
	}
	if d[0] != 4 {
		t.Error("the argument was sorted")
	}
}

func TestWaitsOfMovesAreOfThoseUnderWay(t *testing.T) {
	at := func(call, ret time.Duration, slotTime int64, group uint32) record {
		return record{call: call, ret: ret, ans: client.Decision{Answer: client.Answer{Allowed: true}, SlotTime: time.Duration(slotTime), Group: group}}
	}
	recs := []record{
		at(0, 1, 1, 1), at(10, 11, 2, 1), // before the move
		at(12, 40, 3, 2), at(20, 41, 3, 2), at(39, 42, 4, 2), // waited
		at(50, 51, 5, 2), // after it
		{call: 13, ret: 60, err: errors.New("deadline")},
		at(70, 75, 6, 1), at(80, 81, 7, 1), // and back
	}
	waits, moves := waitsOfMoves(recs)
	if want := []time.Duration{28, 21, 3, 5}; moves != 2 || !slices.Equal(waits, want) {
		t.Errorf("%d moves, waits %v; want 2 and %v", moves, waits, want)
	}
}

func TestLayoutsAreCompared(t *testing.T) {
	before := layout{
		slots: []string{"a", "a", "b", "b"}, epochs: map[uint32]uint32{0: 1, 1: 1},
		replicas: map[uint32][]string{0: {"a", "b"}}, nodes: []string{"a", "b"},
	}
	if broken := checkUnmoved(before, before); broken != nil {
		t.Errorf("equal: %q", broken)
	}
	after := layout{
		slots: []string{"a", "c", "b", "b"}, epochs: map[uint32]uint32{0: 1, 1: 2, 2: 1},
		replicas: map[uint32][]string{0: {"a", "c"}}, nodes: []string{"a", "b", "c"},
	}
	if broken := checkUnmoved(before, after); len(broken) != 3 {
		t.Errorf("a slot, a replica and an epoch changed: %q", broken)
	}
	if checkUnmoved(layout{}, layout{}) == nil {
		t.Error("no slots pass for slots that stayed")
	}
	if n, broken := checkMoved(before, after, 2, 3); n != 1 || broken != nil {
		t.Errorf("one of four moved to the third node: %d, %q", n, broken)
	}
	after.slots = []string{"b", "c", "c", "a"}
	if n, broken := checkMoved(before, after, 2, 3); n != 4 || len(broken) != 1 {
		t.Errorf("all moved: %d, %q", n, broken)
	}
	if broken := checkBalance(before, before.nodes); broken != nil {
		t.Errorf("balanced: %q", broken)
	}
	if broken := checkBalance(after, []string{"a", "b"}); len(broken) != 1 {
		t.Errorf("c should own none: %q", broken)
	}
	if broken := checkBalance(layout{slots: []string{"a", "a", "a", "b"}}, []string{"a", "b"}); len(broken) != 1 {
		t.Errorf("a owns three of four: %q", broken)
	}
	if before.incomplete(2) != "" || before.incomplete(3) == "" {
		t.Errorf("incomplete: %q, %q", before.incomplete(2), before.incomplete(3))
	}
}

func TestVotersAreKnownBySerial(t *testing.T) {
	before := layout{voters: map[uint32][]string{0: {"a/1", "b/2", "c/3"}}, control: []string{"a", "b", "c"}}
	if broken := checkKept(before, before); broken != nil {
		t.Errorf("equal: %q", broken)
	}
	after := layout{voters: map[uint32][]string{0: {"a/1", "b/9", "c/3"}}, control: []string{"a", "c"}}
	if broken := checkKept(before, after); len(broken) != 2 {
		t.Errorf("a replica was made anew, and a control voter removed: %q", broken)
	}
	if broken := checkKept(layout{}, layout{}); len(broken) != 2 {
		t.Errorf("no voters pass for voters that stayed: %q", broken)
	}
}

func TestOnlyStallsExcuse(t *testing.T) {
	seen := []stall{{10 * time.Second, 11 * time.Second}}
	for _, c := range []struct {
		call, ret time.Duration
		want      bool
	}{
		{7 * time.Second, 9 * time.Second, false},
		{9 * time.Second, 11 * time.Second, true},
		{12 * time.Second, 14 * time.Second, true},
		{13 * time.Second, 15 * time.Second, false},
	} {
		if got := excused(record{call: c.call, ret: c.ret}, seen); got != c.want {
			t.Errorf("%v … %v: %v", c.call, c.ret, got)
		}
	}
}

// TestHistoriesAreJudged: the checkers get what the caller saw, with the plan's limit.
func TestHistoriesAreJudged(t *testing.T) {
	k := key{tenant: "t", plan: "ten"}
	recs := make([]record, 14)
	for i := range recs {
		at := time.Duration(i) * time.Millisecond
		recs[i] = record{call: at, ret: at + time.Millisecond/2, ans: client.Decision{Answer: client.Answer{
			Allowed: i < 10, Limit: 10, Remaining: uint64(max(0, 9-i)), PolicyID: "ten", PolicyVersion: 1,
		}}}
		if i >= 10 {
			recs[i].ans.RetryAfter = time.Hour
		}
	}
	exactly := check.Setup{Exactly: []string{"t"}}
	if broken := k.broken(exactly, recs); broken != nil {
		t.Errorf("right ones: %q", broken)
	}
	recs[5].err = errors.New("deadline")
	if broken := k.broken(exactly, recs); broken == nil {
		t.Error("a take without an answer passes")
	}
	recs[5].err = nil
	recs[12].ans.Allowed = true
	if broken := k.broken(check.Setup{}, recs); broken == nil {
		t.Error("an admission too many passes")
	}
}

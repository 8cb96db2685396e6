package client

import (
	"testing"
	"time"
)

// wants calls h n times, pause apart from now on, and returns when it is, how many units
// it asked for first, and when.
func wants(h *holding, now int64, n int, pause time.Duration, cost int64) (end, ask, at int64) {
	for range n {
		now += int64(pause)
		if _, _, units, _ := h.want(now, cost); units > 0 && ask == 0 {
			ask, at = units, now
		}
	}
	return now, ask, at
}

func TestLeaseIsAsLargeAsDemand(t *testing.T) {
	for name, c := range map[string]struct {
		pause       time.Duration
		cost        int64
		least, most int64
	}{
		"1,000 a second":         {time.Millisecond, 1, 20, 100},
		"of 7 each":              {time.Millisecond, 7, 140, 700},
		"100 a second":           {10 * time.Millisecond, 1, 4, 10},
		"20 a second":            {50 * time.Millisecond, 1, 0, 0},
		"a large one at times":   {50 * time.Millisecond, 1000, 0, 0},
		"150,000 a second":       {6667 * time.Nanosecond, 1, 3000, 15_000},
		"more than there can be": {time.Millisecond, maxUnits, maxUnits, maxUnits},
	} {
		h := &holding{}
		if _, ask, _ := wants(h, 0, int(time.Second/c.pause), c.pause, c.cost); ask < c.least || ask > c.most {
			t.Errorf("%s: %d units, want %d to %d", name, ask, c.least, c.most)
		}
	}
}

func TestNextLeaseIsAskedForAhead(t *testing.T) {
	h := &holding{}
	now, ask, _ := wants(h, 0, 500, time.Millisecond, 1)
	if _, again, _ := wants(h, now, 500, time.Millisecond, 1); ask == 0 || again != 0 {
		t.Fatalf("%d asked for, then %d while that is under way", ask, again)
	}
	now += int64(500 * time.Millisecond)
	said := &granted{decision: Decision{Answer: Answer{Allowed: true, Remaining: 7}}, at: now, unit: 2}
	h.refill(now, grant{sequence: 1, until: now + int64(time.Second), left: 100}, said)
	for i := range int64(100) {
		now += int64(time.Millisecond)
		d, ok, ask, _ := h.want(now, 1)
		if !ok || d.Remaining != uint64(7+2*(99-i)) {
			t.Fatalf("call %d: %v, %+v", i, ok, d)
		}
		if want := i == 49; (ask > 0) != want {
			t.Fatalf("call %d, %d left: %d asked for", i, 99-i, ask)
		}
	}
	if _, ok, ask, _ := h.want(now, 1); ok || ask != 0 {
		t.Error("spent more than there was, or asked twice")
	}
	h.refuse(now, leasePause)
	if _, ask, at := wants(h, now, 1000, time.Millisecond, 1); ask == 0 || at-now != int64(leasePause) {
		t.Errorf("%d asked for %v after it was refused", ask, time.Duration(at-now))
	}
}

func TestCostIsTakenFromTwoLeasesOrNone(t *testing.T) {
	h, said := &holding{}, &granted{}
	h.refill(1, grant{sequence: 1, until: 100, left: 3}, said)
	h.refill(1, grant{sequence: 2, until: 200, left: 4}, said)
	if _, ok, _, _ := h.want(2, 8); ok || h.left() != 7 {
		t.Fatalf("%v, %d left", ok, h.left())
	}
	if _, ok, _, _ := h.want(2, 5); !ok || h.left() != 2 || h.grants[0].left != 0 {
		t.Fatalf("%+v", h.grants)
	}
	over, back, _ := h.sweep(3, false)
	if len(over) != 1 || over[0].sequence != 1 || back != nil {
		t.Errorf("%v over, %v back", over, back)
	}
	if _, ok, _, void := h.want(200, 1); ok || len(void) != 1 || void[0].left != 2 {
		t.Errorf("spent when void, or %v", void)
	}
}

func TestLateLeaseIsNotKept(t *testing.T) {
	h := &holding{asking: true}
	if over := h.refill(5, grant{sequence: 1, until: 5, left: 3}, &granted{}); len(over) != 1 || h.left() != 0 || h.asking {
		t.Errorf("%v over, %d left", over, h.left())
	}
}

func TestWhatNobodySpendsGoesBack(t *testing.T) {
	h := &holding{}
	h.want(1, 1)
	h.refill(1, grant{sequence: 1, until: int64(time.Second), left: 3}, &granted{})
	if _, back, _ := h.sweep(int64(leaseIdle), false); back != nil {
		t.Errorf("%v", back)
	}
	if _, back, idle := h.sweep(1+int64(leaseIdle), false); len(back) != 1 || back[0].left != 3 || idle {
		t.Errorf("%v", back)
	}
	if _, _, idle := h.sweep(1+int64(holdingIdle), false); !idle || h.left() != 0 {
		t.Error("not forgotten")
	}
}

func TestAnswersOfAllLimitsAreBroughtUpToDate(t *testing.T) {
	g := &granted{at: 10, unit: 1, units: []uint64{1, 3}, decision: Decision{Answer: Answer{ResetAfter: 100}, Limits: []Answer{
		{PolicyID: "a", Remaining: 5, ResetAfter: 100}, {PolicyID: "b", Remaining: 6, ResetAfter: 20},
	}}}
	d := g.answer(60, 4)
	if d.Limits[0].Remaining != 9 || d.Limits[1].Remaining != 18 || d.Limits[0].ResetAfter != 50 || d.Limits[1].ResetAfter != 0 || d.ResetAfter != 50 {
		t.Errorf("%+v", d)
	}
	if g.decision.Limits[0].Remaining != 5 {
		t.Error("changed for the next one")
	}
}

// TestVoidLeaseIsNotAskedForAgainAtOnce: each burns the share of who asks.
func TestVoidLeaseIsNotAskedForAgainAtOnce(t *testing.T) {
	h := &holding{}
	now, ask, _ := wants(h, 0, 500, time.Millisecond, 1)
	if ask == 0 {
		t.Fatal("none was asked for")
	}
	h.refill(now, grant{sequence: 1, sent: now, until: now, left: ask}, nil)
	if _, again, _ := wants(h, now, int(leasePause/time.Millisecond)-1, time.Millisecond, 1); again != 0 {
		t.Errorf("%d units asked for at once", again)
	}
	if _, again, _ := wants(h, now+int64(leasePause), 10, time.Millisecond, 1); again == 0 {
		t.Error("none is asked for afterwards")
	}
}

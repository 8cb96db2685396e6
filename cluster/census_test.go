package cluster

import (
	"testing"
	"time"
)

func TestCensusCountsWhoAskedOfLate(t *testing.T) {
	var c census
	now := time.Now()
	want := func(session uint64, clients, rank int, settled bool) {
		t.Helper()
		if n, r, s := c.count(session, now); n != clients || r != rank || s != settled {
			t.Errorf("session %d: %d clients, rank %d, settled %v; want %d, %d, %v", session, n, r, s, clients, rank, settled)
		}
	}
	want(7, 1, 0, false)
	want(3, 2, 0, false)
	want(7, 2, 1, false) // again: no other
	want(9, 3, 2, false)
	for range 3 { // 3 has gone
		now = now.Add(5 * time.Second)
		c.count(7, now)
		c.count(9, now)
	}
	want(9, 3, 2, true) // it asked 15 s ago
	now = now.Add(time.Second)
	want(9, 2, 1, true)
	want(7, 2, 0, true)
	now = now.Add(time.Hour)
	want(3, 1, 0, true)
}

func TestCensusIsBounded(t *testing.T) {
	var c census
	now := time.Now()
	for s := range uint64(maxCallers + 100) {
		c.count(s+1, now)
	}
	if n, r, _ := c.count(1<<60, now); n != maxCallers+1 || r != maxCallers || len(c.callers) != maxCallers {
		t.Errorf("%d clients, rank %d, %d kept", n, r, len(c.callers))
	}
	if n, r, _ := c.count(5, now); n != maxCallers || r != 4 {
		t.Errorf("a known one: %d clients, rank %d", n, r)
	}
}

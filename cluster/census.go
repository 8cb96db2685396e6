package cluster

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// census counts the clients that would share the limits if no node answered: those
// that asked for the fallback of late. A client asks every few seconds, so one that
// has gone counts for censusTime at most: until then the shares are smaller than
// they could be, never larger.
type census struct {
	mu      sync.Mutex // guards the rest
	began   time.Time  // when the first asked
	swept   time.Time
	callers []caller // by session
}

type caller struct {
	session uint64
	asked   time.Time
}

const (
	censusTime  = 15 * time.Second // three times what clients wait between two questions
	censusSweep = time.Second
	maxCallers  = 64 << 10 // bounds the memory, at 2 MiB; the count goes no further
)

// count notes that a client asks and returns how many there are with it, its place
// among them by session, and whether the node has counted for long enough to know
// all that ask. session is not 0.
func (c *census) count(session uint64, now time.Time) (clients, rank int, settled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.began.IsZero() {
		c.began, c.swept = now, now
	}
	if now.Sub(c.swept) >= censusSweep {
		c.swept = now
		c.callers = slices.DeleteFunc(c.callers, func(x caller) bool { return now.Sub(x.asked) > censusTime })
	}
	settled = now.Sub(c.began) >= censusTime
	at, known := slices.BinarySearchFunc(c.callers, session, func(x caller, s uint64) int { return cmp.Compare(x.session, s) })
	switch {
	case known:
		c.callers[at].asked = now
	case len(c.callers) == maxCallers:
		return maxCallers + 1, maxCallers, settled
	default:
		c.callers = slices.Insert(c.callers, at, caller{session, now})
	}
	return len(c.callers), at, settled
}

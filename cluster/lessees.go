package cluster

import (
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// lessees knows who has asked for leases of which bucket of late, as far as this node
// was asked: how many share what is left. Only a leader's count matters, and one that
// has just become leader knows nobody yet: the first leases may then be too large a
// part, and are void within a second like all.
type lessees struct {
	mu    sync.Mutex // guards the rest; held for a few map operations, or a sweep a second
	of    map[bucket.Key]*askers
	pairs int // of bucket and session, in all of `of`
	swept time.Time
}

// askers are the sessions that asked for leases of one bucket, with the time of the
// last question. Callers without a session count as one.
type askers struct {
	last  map[uint64]time.Time
	swept time.Time
}

const (
	lesseeTime = 2 * maxLeaseTime // who is silent for so long shares no more
	maxLessees = 128 << 10        // pairs of bucket and session: some 10 MiB; more are not counted
)

// note counts session among the askers of all buckets of takes, and returns how many
// the most wanted of them has.
func (l *lessees) note(takes []bucket.Take, session uint64, now time.Time) (most uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of, l.swept = map[bucket.Key]*askers{}, now
	}
	if now.Sub(l.swept) >= lesseeTime {
		l.swept = now
		for key, a := range l.of {
			l.sweep(key, a, now)
		}
	}
	for i := range takes {
		most = max(most, uint64(l.ask(takes[i].Key, session, now)))
	}
	return max(most, 1)
}

// ask is note for one bucket.
func (l *lessees) ask(key bucket.Key, session uint64, now time.Time) int {
	a := l.of[key]
	if a == nil {
		if l.pairs >= maxLessees {
			return 1
		}
		a = &askers{last: map[uint64]time.Time{}, swept: now}
		l.of[key] = a
	}
	if now.Sub(a.swept) >= lesseeTime/4 {
		l.sweep(key, a, now)
	}
	if _, known := a.last[session]; !known {
		if l.pairs >= maxLessees {
			return len(a.last) + 1
		}
		l.of[key] = a // the sweep may have dropped it
		l.pairs++
	}
	a.last[session] = now
	return len(a.last)
}

// sweep forgets who was silent for long.
func (l *lessees) sweep(key bucket.Key, a *askers, now time.Time) {
	a.swept = now
	for session, last := range a.last {
		if now.Sub(last) >= lesseeTime {
			delete(a.last, session)
			l.pairs--
		}
	}
	if len(a.last) == 0 {
		delete(l.of, key)
	}
}

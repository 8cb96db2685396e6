package simnet

import (
	"sync"
	"time"
)

// signal wakes who waits for it: when it is given, or at a moment that may be set
// while he waits, which spares him being woken to learn of it. It is used again and
// again without making anything anew. The lock of what it belongs to guards it.
type signal struct {
	waiting int           // how many wait
	owed    int           // how many of them have yet to be woken
	wake    chan struct{} // capacity 1; nil: nobody has waited yet
	timer   *time.Timer   // as wake
	at      time.Time     // when the timer fires; zero: it does not
}

// give wakes all who wait, now: one of them, who wakes the next.
func (s *signal) give() {
	s.owed = s.waiting
	s.pass()
}

// pass wakes one who is owed it.
func (s *signal) pass() {
	if s.owed == 0 {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default: // somebody has yet to see the last one
	}
}

// giveAt wakes who waits when the moment comes, unless he is woken before.
func (s *signal) giveAt(at time.Time) {
	if s.waiting == 0 || !s.at.IsZero() && !at.Before(s.at) {
		return
	}
	d := time.Until(at)
	if d <= 0 {
		s.give()
		return
	}
	s.at = at
	s.timer.Reset(d)
}

// wait gives up the lock until the signal is given or the moment comes (zero: never).
// It may return too early: who waits looks again, and waits again.
func (s *signal) wait(lock sync.Locker, until time.Time) {
	if s.wake == nil {
		s.wake, s.timer = make(chan struct{}, 1), time.NewTimer(time.Hour)
		s.timer.Stop()
	}
	s.waiting++
	if !until.IsZero() {
		s.giveAt(until)
	}
	lock.Unlock()
	fired := false
	select {
	case <-s.wake:
	case <-s.timer.C:
		fired = true
	}
	lock.Lock()
	s.waiting--
	switch {
	case fired:
		s.at, s.owed = time.Time{}, s.waiting
	case s.owed > 0:
		s.owed--
	}
	if s.waiting == 0 && !s.at.IsZero() {
		s.timer.Stop()
		s.at = time.Time{}
	}
	s.pass()
}

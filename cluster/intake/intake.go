// Package intake says how many requests may wait for one group, so that a node that
// is asked for more than it can decide refuses the rest at once, and spends its time
// on what it will answer.
//
// What waits is bounded by the wait: as many requests as were answered of late within
// Patience. That follows Little's law (waiting = rate × wait) and needs to know neither
// what a request costs nor what the machine can do. Whether requests wait for long is
// judged by the quickest answer of a span, as CoDel does: one slow commit makes no
// queue, but when nobody was answered soon there is one.
//
// A message is let in whole or refused whole, because its answer is one: what is refused
// must not wait for what is not. So there may be half a message more than the limit. And a
// full group looks at who asks: a source that keeps within its share of the limit is let
// in also when others have filled it, up to twice the limit in all, and one that got
// nothing for a second is let in with as much of its message as its share is.
package intake

import (
	"math"
	"sync"
	"time"
)

const (
	// Patience is how long a request may have to wait in a group before it is better
	// refused: an answer that comes later helps no one who asks a limiter first. With
	// twice as much, leaders that had one core between three were lost when an overload
	// began, since pings wait behind the same work.
	Patience = 100 * time.Millisecond
	// Least may always wait, so that a group whose commits are slow by themselves, and
	// not for what is before them, stays in work: with 100 ms for each it still decides
	// a thousand a second. Where even that is more than can be done in time, an answer
	// takes longer, and callers' deadlines count.
	Least = 100
	// Start is how many may wait before anything is known of the rate, or where it is
	// low: two messages of the largest size. A group that could do more shows that within
	// a few looks; one that can do less has not let in what takes seconds.
	Start = 2000
	// look is how often the limit is looked at, four times while one waits. Each counts for a
	// quarter of the rate: entries come one after the other, and a single look may see none.
	look = Patience / 4
	// Memory is for how long a source counts that does not ask again, and how long one
	// may go with nothing.
	Memory = time.Second
)

// Queue counts the requests that were let in for one group and are not answered. Its
// methods may be called by many goroutines at once. Times are ns of one steady clock.
type Queue struct {
	most int

	mu      sync.Mutex // guards what follows; held for a few instructions
	limit   int        // Least … most
	late    bool       // requests waited too long, and some were refused in each span since
	waiting int
	sources map[any]*source // who asked within the last Memory
	refused uint64          // ever
	quick   int64           // the quickest answer of the last span that had one, ns
	heard   int64           // when something was answered last by a commit
	rate    float64         // answers in Patience, of the last spans in which any waited
	span    span
}

// source is who asks.
type source struct {
	waiting int   // of its requests
	asked   int64 // when it asked last …
	fed     int64 // … and when something of it was let in, or it came
}

// span is what happened since the limit was looked at last.
type span struct {
	begun    int64
	answered int
	quickest int64 // 0: none was answered
	refused  bool
}

// New returns a queue that lets at most so many requests wait, Least or more, by
// every account; only those who keep within their share may go beyond, up to twice.
func New(most int) *Queue {
	most = max(most, Least)
	return &Queue{most: most, limit: min(most, Start), sources: make(map[any]*source)}
}

// Enter lets in as many of the n requests of a message as may wait now, and counts
// them; Leave takes them back. by is who asks, left how long it will wait, in ns.
func (q *Queue) Enter(now int64, by any, n int, left int64) (entered int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.meet(now, by)
	entered = q.room(now, s, n, left)
	if entered > 0 {
		q.waiting += entered
		s.waiting += entered
		s.fed = now
	}
	q.refuse(n - entered)
	return entered
}

// meet notes that a source asks.
func (q *Queue) meet(now int64, by any) *source {
	q.pass(now)
	s := q.sources[by]
	if s == nil {
		s = &source{fed: now}
		q.sources[by] = s
	}
	s.asked = now
	return s
}

// room says how many of n requests of s may enter.
func (q *Queue) room(now int64, s *source, n int, left int64) int {
	share := max(1, q.limit/len(q.sources))
	switch {
	case q.waiting == 0:
		return n // whoever is alone is never too much
	case q.late && left < q.quick:
		return 0 // even the quickest answer would come too late
	case q.waiting+n/2 < q.limit, n <= share-s.waiting && q.waiting+n/2 < 2*q.limit:
		return n // half of a message may be too much
	case s.waiting == 0 && now-s.fed >= int64(Memory):
		return min(n, share)
	}
	return 0
}

func (q *Queue) refuse(n int) {
	if n > 0 {
		q.refused += uint64(n)
		q.span.refused = true
	}
}

// Answered tells that n requests were decided by a commit, took ns after they
// entered. What is answered without a commit says nothing about the wait.
func (q *Queue) Answered(now int64, n int, took int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pass(now)
	q.span.answered += n
	q.heard = now
	if took = max(took, 1); q.span.quickest == 0 || took < q.span.quickest {
		q.span.quickest = took
	}
}

// Full tells that the group could not take n requests that had been let in: those
// that wait beside them are all that it can hold.
func (q *Queue) Full(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = max(Least, min(q.limit, q.waiting-n))
	q.refuse(n)
}

// Leave ends the wait of n requests of a source, whatever became of them.
func (q *Queue) Leave(by any, n int) {
	if n == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting -= n
	q.sources[by].waiting -= n
}

// pass ends the span if its time is over.
func (q *Queue) pass(now int64) {
	s := q.span
	past := now - s.begun
	if past < int64(look) {
		return
	}
	q.span = span{begun: now}
	if s.answered > 0 || q.waiting > 0 {
		seen := float64(s.answered) * float64(Patience) / float64(past)
		q.rate += (seen - q.rate) * (1 - math.Pow(0.75, float64(past)/float64(look)))
	}
	within := int(q.rate)
	switch {
	case s.quickest > int64(Patience), s.quickest > int64(Patience)/2 && q.waiting > 2*within:
		// All waited too long, or those who come now will: there is a queue, and it grows.
		q.limit, q.late = min(q.limit, within), true
	case now-q.heard >= int64(Memory):
		// What is refused, or answered without a commit, says nothing of how long others would wait.
		q.limit, q.late = max(q.limit, min(2*q.limit, Start)), false
	case s.refused:
		// The limit binds. Fewer than it allows are no reason to lower it: nobody waits for long.
		q.limit = max(q.limit, min(2*q.limit, within))
	case s.answered > 0 || q.waiting == 0:
		// Nothing was refused: what the limit had to be once is forgotten.
		usual := max(within, Start)
		q.limit, q.late = min(2*q.limit, usual+max(0, q.limit-usual)*15/16), false
	}
	q.limit = min(max(q.limit, Least), q.most)
	if s.quickest > 0 {
		q.quick = s.quickest
	}
	for by, x := range q.sources {
		if x.waiting == 0 && now-x.asked >= int64(Memory) {
			delete(q.sources, by)
		}
	}
}

// State is a queue at one moment.
type State struct {
	Waiting, Limit int
	Refused        uint64 // since it was made
}

// State is for people to look at.
func (q *Queue) State() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	return State{Waiting: q.waiting, Limit: q.limit, Refused: q.refused}
}

package bucket

import "math"

// level is the state of a bucket, 16 bytes: a time and two numbers. What they
// mean is its algorithm's business.
type level struct {
	last int64 // ns of slot time, or the ends of a list of records
	a, b uint32
}

// kind is the arithmetic of one algorithm. Its methods are pure, but that spend,
// credit, settle and free edit lists of records where an algorithm keeps one, and
// spend only when x.commit is set. now is never before what x has seen. All
// integers are exact; what exceeds an int64 of ns is math.MaxInt64.
type kind interface {
	// blank is the level of an absent bucket.
	blank(l *Limit, now int64) level
	// view is what x holds at now; the other methods take it as v.
	view(x *site, l *Limit, now int64) level
	// room is the largest cost that is admitted at now: 0 … capacity.
	room(l *Limit, v level, now int64) uint64
	// wait is the least ns until need > room is admitted; need ≤ capacity.
	wait(x *site, l *Limit, v level, need uint64, now int64) int64
	// reset is the least ns until the bucket is fresh.
	reset(x *site, l *Limit, v level, now int64) int64
	// spend charges cost ≤ room and returns the view behind it; extra is
	// Answer.Delay or Answer.FencingToken where the algorithm has one. It leaves
	// in x.raw what the cell has to hold.
	spend(x *site, l *Limit, v level, cost uint64, now int64) (after level, extra uint64)
	// credit gives back what c says, as far as x still holds it.
	credit(x *site, l *Limit, c *credit, now int64)
	// fresh says whether x equals an absent bucket at now and for ever.
	fresh(x *site, l *Limit, now int64) bool
	// used is what carries over to another algorithm at the time at.
	used(x *site, l *Limit, at int64) uint64
	// carry brings x from one limit of this algorithm to another at the time at.
	carry(x *site, from, to *Limit, at int64)
	// begin makes x of what another algorithm had used at the time at.
	begin(x *site, l *Limit, used uint64, at int64)
	// settle writes to x.raw, and to its list, what carry and begin only noted.
	settle(x *site, l *Limit, now int64)
	// free gives the list that x.raw names back.
	free(x *site)
}

var kinds = [...]kind{
	TokenBucket:   tokenBucket{},
	LeakyBucket:   leakyBucket{},
	FixedWindow:   fixedWindow{},
	SlidingWindow: slidingWindow{},
	SlidingLog:    slidingLog{},
	Concurrency:   concurrency{},
}

// kind is l's arithmetic. A limit without a known algorithm denies all.
func (l *Limit) kind() kind {
	if l.Algorithm.known() {
		return kinds[l.Algorithm]
	}
	return tokenBucket{}
}

// site is one bucket while it is worked on: where it is, what its cell holds,
// and what price has noted but not written.
type site struct {
	s      *state
	key    Key
	slot   uint16
	commit bool  // lists may be edited
	now    int64 // ns of slot time
	raw    level // as in the cell
	thaw   int64 // from the version, in slot time: see version.thaw

	floor  int64  // of a SlidingLog: entries before it are out
	lump   uint32 // one entry of a list, or one permit, that is not made yet …
	lumpAt int64  // … its time, or its deadline

	gone     level     // a list that has to be freed …
	goneKind Algorithm // … of this algorithm; 0: none
}

// credit is what one take was charged.
type credit struct {
	cost  uint64
	at    int64  // when, ns of slot time
	token uint64 // of the permit it was granted; 0: none
}

// plain is what kinds without a list have in common.
type plain struct{}

func (plain) settle(*site, *Limit, int64) {}

func (plain) free(*site) {}

// age is how long ago then was; 0 if it is to come.
func age(then, now int64) uint64 {
	if then >= now {
		return 0
	}
	return uint64(now) - uint64(then)
}

// after is t + ns, which is ≥ 0, or the end of time.
func after(t, ns int64) int64 {
	if t > math.MaxInt64-ns {
		return math.MaxInt64
	}
	return t + ns
}

// less is a − b, or 0.
func less(a, b uint64) uint64 { return a - min(a, b) }

// windowStart is the beginning of the window that now ≥ 0 is in.
func (x *site) windowStart(l *Limit, now int64) int64 {
	window, phase := uint64(l.Window), uint64(0)
	if !x.s.phaseZero {
		phase = x.key.Lo % window
	}
	return now - int64((uint64(now)+window-phase)%window)
}

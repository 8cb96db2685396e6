package transport

import "time"

// UntilBeat is how long to wait at now for the next beat of every: a whole multiple
// of it by the wall clock, so that what the nodes of a cluster do over and over they
// do together. A node is then woken once for the pings of all others and not once
// for each, which is most of what an idle node costs. A clock that is set, or is wrong,
// makes one wait short or others come at other moments: the wait is between an eighth of
// every and nine eighths. So one that is always late by less than that keeps its rate.
func UntilBeat(now time.Time, every time.Duration) time.Duration {
	wait := now.Truncate(every).Add(every).Sub(now.Round(0))
	if wait < every/8 {
		wait += every
	}
	return wait
}

package ratelimit

import "time"

// The spread of Retry-After: up to a quarter of the wait, but never less than a second,
// which is the unit of the field, nor more than a minute.
const (
	spreadPart = 4
	mostSpread = 60 // s
)

// RetryAfter is the value of Retry-After for a wait: whole seconds, at least 1, rounded
// up, so that whoever comes back then does not come early. ok is false for a wait
// below 0, which says that no wait helps: then there is no such field.
//
// jitter keeps callers who were denied in one instant from coming back in one. It is
// given how many seconds may be added, 1 … 60, about a quarter of the wait, and returns
// how many are, from 0; what it returns outside of that is cut. nil adds none.
func RetryAfter(wait time.Duration, jitter func(most int64) int64) (seconds int64, ok bool) {
	if wait < 0 {
		return 0, false
	}
	seconds = max(1, roundUp(wait))
	if jitter != nil {
		most := min(max(1, seconds/spreadPart), mostSpread)
		seconds += min(max(0, jitter(most)), most)
	}
	return seconds, true
}

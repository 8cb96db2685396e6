package group

import (
	"math"
	"time"
)

// clock is a leader's group time: the anchor of its log, taken once when its
// leadership began, and its own monotonic time since then. It is not anchored
// afresh at each entry, which would lose the way of each entry into the log.
type clock struct {
	stamp int64 // group time at at
	at    time.Time
	read  func() time.Time // Config.Now
}

// now is the group time in ns. It saturates.
func (c clock) now() int64 {
	d := int64(max(c.read().Sub(c.at), 0))
	if c.stamp > math.MaxInt64-d {
		return math.MaxInt64
	}
	return c.stamp + d
}

// anchored returns the clock that a leadership beginning now goes by. Each stamp in
// the log was made before it arrived here, so the clock is never ahead of the time
// that has really passed since; it is behind by one replication delay: that of the
// entry of the last leader which took the shortest of late.
func (r *Replica) anchored() clock {
	stamp, at, ok := r.store.Anchor()
	if t := r.fsm.view.load().time; !ok {
		return clock{t, r.cfg.Now(), r.cfg.Now}
	}
	return clock{stamp, at, r.cfg.Now}
}

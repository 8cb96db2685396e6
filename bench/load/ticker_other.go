//go:build !linux

package load

import "time"

// ticker is none: the runtime's timers have to do.
type ticker struct{}

func newTicker(time.Duration) *ticker { return nil }

func (*ticker) wait() bool { return false }

func (*ticker) close() {}

package load

import (
	"context"
	"time"
)

// pacer waits for the moments at which calls of an open loop are due.
//
// While a process has nothing else to do, the runtime waits for its next timer in whole
// milliseconds: calls that are due every 50 µs would begin half a millisecond late on
// average, and that would be counted against who answers them. So where calls are so
// close together, a ticker of the kernel's wakes this process.
type pacer struct {
	tick *ticker // nil: the runtime's timers have to do
}

// fineStep is how often the kernel's ticker ticks: what is due in between begins together,
// as waking a process for each call would cost more than many a call.
const fineStep = 250 * time.Microsecond

// newPacer makes one for calls that are so far apart. close must follow.
func newPacer(gap time.Duration) *pacer {
	if gap >= time.Millisecond {
		return &pacer{}
	}
	return &pacer{tick: newTicker(fineStep)}
}

func (p *pacer) close() {
	if p.tick != nil {
		p.tick.close()
	}
}

// until returns when due has come, or ctx has ended, or up to fineStep later.
func (p *pacer) until(ctx context.Context, due time.Time) {
	for wait := time.Until(due); wait > 0 && ctx.Err() == nil; wait = time.Until(due) {
		if p.tick != nil && p.tick.wait() {
			continue
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

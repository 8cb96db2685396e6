package sim

import (
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/cluster"
)

// switches are what a nemesis does to a node from within; they outlast its lives.
type switches struct {
	apply, store atomic.Int64                  // ns that each takes
	full         atomic.Bool                   // the disk is
	hung         atomic.Pointer[chan struct{}] // closed to go on; nil: nothing hangs
	hungStore    atomic.Pointer[chan struct{}]
}

// clock is a node's own monotonic clock: it began some time ago and runs a little
// fast or slow.
func (w *world) clock(i int) func() time.Time {
	if i >= len(w.plan.drift) {
		return time.Now
	}
	ppm, offset, start := time.Duration(w.plan.drift[i]), w.plan.offset[i], w.start
	return func() time.Time {
		d := time.Since(start)
		return start.Add(offset + d + d*ppm/1_000_000)
	}
}

func (w *world) seams(i int, name string) cluster.Seams {
	s := w.switches[name]
	return cluster.Seams{
		Now: w.clock(i),
		Applying: func(uint32) {
			wait(&s.hung)
			time.Sleep(time.Duration(s.apply.Load()))
		},
		Storing: func() error {
			wait(&s.hungStore)
			time.Sleep(time.Duration(s.store.Load()))
			if s.full.Load() {
				return errFull
			}
			return nil
		},
		LogBytes: w.plan.logs, ControlEntries: w.plan.control, Counts: &w.counts,
	}
}

func wait(p *atomic.Pointer[chan struct{}]) {
	if c := p.Load(); c != nil {
		<-*c
	}
}

// unhang lets go on what hangs in a node, as the end of its process would.
func (w *world) unhang(name string) {
	s := w.switches[name]
	release(&s.hung)
	release(&s.hungStore)
}

func release(p *atomic.Pointer[chan struct{}]) {
	if c := p.Swap(nil); c != nil {
		close(*c)
	}
}

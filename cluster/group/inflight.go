package group

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
)

// inflight is the proposal that the driver waits for, as the watchdog sees it.
type inflight struct {
	epoch time.Time
	begun atomic.Int64 // ns since epoch plus one; 0: none

	mu    sync.Mutex // guards batch; held to answer its calls, so that it is not used again meanwhile
	batch *batch
}

func (i *inflight) begin() { i.begun.Store(int64(time.Since(i.epoch)) + 1) }
func (i *inflight) end()   { i.begun.Store(0) }

// set names the batch in flight, nil if none.
func (i *inflight) set(b *batch) {
	i.mu.Lock()
	i.batch = b
	i.mu.Unlock()
}

// abandon answers the calls in flight, whose entry may still commit or not.
func (i *inflight) abandon(g *gather, why string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.batch != nil {
		g.finish(i.batch, fault.New(fault.OutcomeUnknown, "%s", why))
	}
}

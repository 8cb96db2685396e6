package group

import (
	"bytes"
	"context"
	"runtime"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// sweepCells is how many cells an idle leader's sweep visits.
const sweepCells = 4096

// driver is the one goroutine that proposes entries: batches of takes, stamps
// and what else the group does to itself, one at a time.
type driver struct {
	r        *Replica
	prepared uint64    // the leadership whose first entry is applied
	last     time.Time // when an entry was committed last
	held     *op       // the next one, which could not go beside those before it
}

// run works until ctx ends, and then leaves what is gathered to Run.
func (d *driver) run(ctx context.Context) {
	tick := time.NewTicker(d.r.timers.Sweep)
	defer tick.Stop()
	for {
		if d.held != nil && ctx.Err() == nil {
			d.perform(ctx, d.nextOp())
			d.work(ctx)
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-d.r.gather.kick:
		case o := <-d.r.ops:
			d.perform(ctx, o)
		case <-tick.C:
			d.idle(ctx)
		}
		d.work(ctx)
	}
}

// work commits batches until none is gathered.
func (d *driver) work(ctx context.Context) {
	for ctx.Err() == nil {
		gen, ok := d.ready(ctx)
		if !ok {
			return
		}
		b := d.r.gather.take()
		if b == nil {
			return
		}
		d.commit(ctx, gen, b)
		// Those just answered ask again: let them run first, so that they join the
		// next entry. Where nobody waits for a processor it costs nothing; with 256
		// callers in one process it makes 70 takes an entry of 5.
		runtime.Gosched()
		if o := d.nextOp(); o != nil {
			d.perform(ctx, o)
		}
	}
}

// ready says whether entries may be proposed: this replica leads, and an entry
// of its term is applied here. The first time it makes that so.
func (d *driver) ready(ctx context.Context) (gen uint64, ok bool) {
	gen, ok = d.r.lead.current()
	if !ok || d.r.failed.Load() != nil {
		return 0, false
	}
	if d.prepared == gen {
		return gen, true
	}
	return gen, d.prepare(ctx, gen)
}

// prepare begins to serve: it takes the anchor, once for the whole leadership,
// and commits a stamp by it. Once that is applied the table holds all that any
// leader before has committed.
func (d *driver) prepare(ctx context.Context, gen uint64) bool {
	r := d.r
	c := r.anchored()
	r.lead.clock.Store(&c)
	var out applied
	if err := d.propose(ctx, gen, stampWith(0), &out); err != nil {
		r.logger.Warn("cannot begin to lead", "error", err)
		return false
	}
	if c.now() < out.time {
		// The table has a later time than the newest stamp in the log: go on from that.
		c = clock{out.time, r.cfg.Now(), r.cfg.Now}
		r.lead.clock.Store(&c)
	}
	if !r.serve(gen, out.term) {
		return false
	}
	d.prepared = gen
	r.logger.Info("serving", "term", out.term, "index", out.index, "buckets", r.fsm.view.load().buckets)
	return true
}

// commit proposes a batch and answers its calls.
func (d *driver) commit(ctx context.Context, gen uint64, b *batch) {
	r := d.r
	defer b.release()
	r.inflight.set(b)
	defer r.inflight.set(nil)
	begun := time.Now()
	size, n := 0, 0
	err := d.propose(ctx, gen, proposal{
		entry: func(stamp int64) []byte {
			if n, _ = r.gather.seal(b, time.Now()); n == 0 {
				return nil
			}
			e := bytes.Clone(b.builder.Entry(stamp)) // the log keeps it; the builder is used again
			size = len(e)
			return e
		},
		undo: func() { r.gather.unseal(b) },
	}, &b.out)
	if err == nil && n > 0 {
		r.metrics.countEntry(n, size, time.Since(begun))
		r.countResults(&b.out.results)
	}
	r.gather.finish(b, r.outcome(err))
}

// idle keeps group time going while nobody takes: a stamp now and then, and
// while there are buckets, or results, a sweep, which drops those that are full
// again, or too old.
func (d *driver) idle(ctx context.Context) {
	gen, ok := d.r.lead.current()
	if !ok || d.prepared != gen {
		return
	}
	// Half a period less, because the last entry was committed a little after a tick.
	t, since := &d.r.timers, time.Since(d.last)
	p, v := stampWith(0), d.r.fsm.view.load()
	switch {
	case v.buckets+v.records > 0 && since >= t.Sweep/2:
		p = stampWith(sweepCells)
	case since < t.Stamp-t.Sweep/2:
		return
	}
	var out applied
	if err := d.propose(ctx, gen, p, &out); err != nil {
		d.r.logger.Debug("cannot commit a stamp", "error", err)
	}
}

// stampWith proposes the time, and a sweep of that many cells.
func stampWith(cells int) proposal {
	return proposal{entry: func(stamp int64) []byte { return bucket.StampEntry(stamp, cells) }}
}

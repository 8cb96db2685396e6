package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// When memory goes back to the system: when this process has been quiet and
// holds much more than is alive, or than it did when it gave back last. Go's own
// scavenger keeps what a heap of twice the size would take, and a quiet process
// collects every two minutes only, so that what a large change of policies or a
// burst of keys took would stay.
const (
	giveBackEvery = 5 * time.Second
	giveBackOver  = 8 << 20  // bytes, beyond an eighth of what is compared with
	quietBytes    = 16 << 20 // allocated between two looks; more is not quiet
	giveBackAgain = 20 * time.Second
)

// giveBackMemory does so until ctx ends. A look takes microseconds; giving
// back takes a collection, beside everything else, now and then.
func giveBackMemory(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(giveBackEvery)
	defer tick.Stop()
	var last, given footprint
	givenAt := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := measureFootprint()
		quiet := now.allocated-last.allocated < quietBytes
		last = now
		if !quiet || time.Since(givenAt) < giveBackAgain || !now.exceeds(now.live) && !now.exceeds(given.held) {
			continue
		}
		debug.FreeOSMemory()
		given, givenAt = measureFootprint(), time.Now()
		log.Debug("memory given back to the system", "held", now.held, "left", given.held)
	}
}

// footprint is what the heap takes, in bytes.
type footprint struct {
	held      uint64 // from the system, for the heap
	live      uint64 // found alive by the last collection
	allocated uint64 // ever
}

func measureFootprint() footprint {
	s := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(s)
	value := func(i int) uint64 {
		if s[i].Value.Kind() != metrics.KindUint64 {
			return 0 // this runtime does not tell it
		}
		return s[i].Value.Uint64()
	}
	return footprint{held: value(0) + value(1) + value(2), live: value(3), allocated: value(4)}
}

// exceeds says whether so much more is held than a number of bytes that it pays
// to give it back.
func (f footprint) exceeds(bytes uint64) bool { return f.held > bytes+bytes/8+giveBackOver }

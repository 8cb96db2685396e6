package client

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// acks knows up to which sequence every call has ended. Sequences end in any
// order; the ended ones above the mark are bits in a ring. The cost is constant
// per sequence, the memory one bit per sequence between the oldest open call
// and the newest.
type acks struct {
	mark atomic.Uint64 // all sequences up to here have ended

	mu   sync.Mutex // guards ring; held for bit work only
	ring []uint64   // bit s%n is sequence s, for mark < s ≤ mark+n; a power of two words
}

const minRing = 64 // words

// end marks sequences as ended; zeros are skipped.
func (a *acks) end(seqs ...uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	mark := a.mark.Load()
	for _, s := range seqs {
		if s <= mark {
			continue
		}
		for s-mark > uint64(len(a.ring))*64 {
			a.grow(mark)
		}
		a.ring[s/64%uint64(len(a.ring))] |= 1 << (s % 64)
		if s == mark+1 {
			mark = a.advance(mark)
		}
	}
	a.mark.Store(mark)
}

// advance moves the mark over the ended sequences after it, clearing their bits.
func (a *acks) advance(mark uint64) uint64 {
	for {
		s := mark + 1
		word := &a.ring[s/64%uint64(len(a.ring))]
		run := bits.TrailingZeros64(^(*word >> (s % 64)))
		if run = min(run, 64-int(s%64)); run == 0 {
			return mark
		}
		*word &^= (1<<run - 1) << (s % 64)
		mark += uint64(run)
		if s%64+uint64(run) < 64 {
			return mark
		}
	}
}

// grow doubles the ring.
func (a *acks) grow(mark uint64) {
	old := a.ring
	a.ring = make([]uint64, max(minRing, 2*len(old)))
	if len(old) == 0 {
		return
	}
	for s := mark + 1; s <= mark+uint64(len(old))*64; s++ {
		if old[s/64%uint64(len(old))]&(1<<(s%64)) != 0 {
			a.ring[s/64%uint64(len(a.ring))] |= 1 << (s % 64)
		}
	}
}

package group

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Metrics counts what a replica does. All fields may be read at any time.
type Metrics struct {
	Takes             atomic.Uint64 // requests asked of this replica while it led: those it refused as no leader are not among them
	Admitted          atomic.Uint64
	Denied            atomic.Uint64 // by a committed entry
	DeniedUncommitted atomic.Uint64 // from the applied state
	Repeated          atomic.Uint64 // answered again, charged before
	Refused           atomic.Uint64 // judged, but neither admitted nor denied: too old, not held, full …
	Busy              atomic.Uint64 // refused because the batch being gathered was full
	Expired           atomic.Uint64 // dropped before being proposed
	OutcomeUnknown    atomic.Uint64

	Entries           atomic.Uint64 // proposed by this replica and committed
	EntryRequests     atomic.Uint64 // sum of the requests in them
	EntryBytes        atomic.Uint64
	Commit            Latency       // from proposing an entry to having applied it
	Elections         atomic.Uint64 // times this replica became leader
	Transfers         atomic.Uint64 // times it handed leadership over
	SnapshotsSent     atomic.Uint64
	SnapshotsReceived atomic.Uint64
	Stalls            atomic.Uint64 // times the watchdog acted
}

// Latency is a histogram with buckets that double from 64 µs to 2.1 s, and above.
type Latency struct {
	Buckets [17]atomic.Uint64 // Buckets[i] counts durations below 64 µs << i; the last all others
	SumNs   atomic.Uint64
}

// Observe counts d.
func (l *Latency) Observe(d time.Duration) {
	d = max(d, 0)
	i := bits.Len64(uint64(d) / 64_000)
	l.Buckets[min(i, len(l.Buckets)-1)].Add(1)
	l.SumNs.Add(uint64(d))
}

// Bound is the upper edge of bucket i; the last one has none and answers 0.
func (l *Latency) Bound(i int) time.Duration {
	if i >= len(l.Buckets)-1 {
		return 0
	}
	return 64 * time.Microsecond << i
}

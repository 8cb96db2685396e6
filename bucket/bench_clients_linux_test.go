package bucket

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"
)

// BenchmarkClients is entries of 500 takes, each one call of one of 16 callers, which
// either share a session or have one each, on buckets that are there and evenly asked.
// Sequences rise, but of two calls the later may come first, and each acknowledges what
// is no longer in flight. Encoding the next entry between two of them leaves the caches
// as the rest of a node would. cpu-ns/take is the median.
func BenchmarkClients(b *testing.B) {
	for _, keys := range []int{100_000, 1_000_000} {
		for _, sessions := range []int{1, 16} {
			b.Run(fmt.Sprintf("keys=%dk/sessions=%d", keys/1000, sessions), func(b *testing.B) { benchClients(b, keys, sessions) })
		}
	}
}

func benchClients(b *testing.B, keys, sessions int) {
	const callers, batch = 16, 500
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := filled(b, keys)
	var out Results
	var times []time.Duration
	var n uint64
	call := 0
	next := func() {
		of := uint64(call ^ 1) // the call of which this entry is
		g.b.Reset()
		for k := range uint64(batch) {
			n += 0x9e3779b97f4a7c15
			r := benchRequest(n >> 20 % uint64(keys))
			session, first, flight := of%uint64(sessions), of/uint64(sessions)*batch, uint64(callers/sessions*batch)
			r.ID = ID{Kind: ClientID, Session: spread(session).Hi, Sequence: first + k + 1, Acked: first - min(first, flight-batch), Content: n}
			if sessions == 1 {
				r.ID.Acked -= min(r.ID.Acked, batch) // the call that came first may go on for longer
			}
			g.b.Add(&r)
		}
		e := g.b.Entry(int64(keys) + int64(call)*1_000_000)
		out.Reset()
		g.index++
		times = append(times, step(func() {
			if err := g.table.Apply(g.index, e, &out); err != nil {
				b.Fatal(err)
			}
		}))
		for i := range out.Items {
			if out.Items[i].Code != Admitted {
				b.Fatal(out.Items[i])
			}
		}
		call++
	}
	for range 400 { // as many results as there will be, and memory that is reused
		next()
	}
	times = times[:0]
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2])/batch, "cpu-ns/take")
	b.ReportMetric(float64(times[len(times)/10])/batch, "fast-ns/take")
	b.ReportMetric(float64(g.table.Records()), "records")
}

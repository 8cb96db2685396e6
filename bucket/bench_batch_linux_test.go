package bucket

import (
	"runtime"
	"slices"
	"testing"
	"time"
)

// BenchmarkBatches is what a replica does for a client that asks in large batches:
// entries of 1,000 takes of one session on 10,000 buckets in 1,024 slots, with 8,000
// takes not acknowledged. Between entries other memory is used, as other processes on
// the same core would. cpu-ns/take is of the fastest tenth of the entries.
func BenchmarkBatches(b *testing.B) {
	const (
		keys   = 10_000
		batch  = 1000
		behind = 8 * batch
		passes = 50
	)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	g := filled(b, keys)
	entries := make([][]byte, passes)
	for i := range entries {
		reqs := make([]Request, batch)
		for k := range reqs {
			seq := uint64(i*batch + k + 1)
			reqs[k] = benchRequest(seq % keys)
			reqs[k].ID = ID{Kind: ClientID, Session: 7, Sequence: seq, Acked: seq - min(seq, behind+uint64(k)+1), Content: seq}
		}
		entries[i] = g.encode(int64(keys), reqs...)
	}
	var times []time.Duration
	others := make([]byte, 2<<20)
	i := 0
	next := func() {
		pass := int64(1 + i/len(entries)) // in each pass the ids of the last one are forgotten
		e := entries[i%len(entries)]
		le.PutUint64(e[entryStamp:], uint64(pass*3*Horizon+int64(i)*1000))
		g.index++
		for at := 0; at < len(others); at += 64 {
			others[at]++
		}
		times = append(times, step(func() {
			if err := g.table.Apply(g.index, e, nil); err != nil {
				b.Fatal(err)
			}
		}))
		i++
	}
	for range entries {
		next()
	}
	times = times[:0]
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/10])/batch, "cpu-ns/take")
	b.ReportMetric(float64(times[len(times)/2])/batch, "median-ns/take")
}

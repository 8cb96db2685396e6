package bucket

import (
	"testing"

	"golang.org/x/sys/unix"
)

// kindLimit is a limit of an algorithm that benchmarks do not exhaust. Its window
// is as long as a day, so that logs and permits stay as full as they get.
func kindLimit(a Algorithm) Limit {
	const day = 24 * 3600 * 1_000_000_000
	l := Limit{Algorithm: a, Amount: MaxAmount, Window: day}
	if a == TokenBucket || a == LeakyBucket {
		l.Burst = MaxAmount
	}
	return l
}

// BenchmarkKinds is entries of 32 takes on 100,000 buckets of each algorithm,
// the token bucket for comparison: no ids, each bucket taken from again and again.
// Logs and permits grow with each take up to what a bucket keeps; those of the
// others do not.
func BenchmarkKinds(b *testing.B) {
	const keys, batch = 100_000, 32
	for a := TokenBucket; ; a++ {
		if _, ok := ParseAlgorithm(a.String()); !ok {
			return
		}
		b.Run(a.String(), func(b *testing.B) {
			g := newRig(b, 1024)
			entries := kindEntries(g, kindLimit(a), keys, batch)
			var out Results
			i := 0
			next := func() {
				e := entries[i%len(entries)]
				le.PutUint64(e[entryStamp:], uint64(1+i)*1_000_000)
				out.Reset()
				g.index++
				if err := g.table.Apply(g.index, e, &out); err != nil || out.Items[0].Code != Admitted {
					b.Fatal(err, out.Items[0])
				}
				i++
			}
			for range entries {
				next()
			}
			b.ReportAllocs()
			start := cpu(unix.CLOCK_PROCESS_CPUTIME_ID)
			for b.Loop() {
				next()
			}
			used := cpu(unix.CLOCK_PROCESS_CPUTIME_ID) - start
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*batch), "cpu-ns/take")
		})
	}
}

// kindEntries take once from each bucket.
func kindEntries(g *rig, l Limit, keys, batch int) [][]byte {
	entries := make([][]byte, keys/batch)
	n := uint64(0)
	for i := range entries {
		reqs := make([]Request, batch)
		for k := range reqs {
			n++
			reqs[k] = benchRequest(n * 7919 % uint64(keys))
			reqs[k].Takes[0].Rule.Limit = l
		}
		entries[i] = g.encode(1, reqs...)
	}
	return entries
}

// BenchmarkFullLog takes from a sliding log that keeps 1,000 entries, and
// BenchmarkDeniedByFullLog is denied by it: what the longest record costs.
func BenchmarkFullLog(b *testing.B) { fullLog(b, 1_000_000_000, Admitted) }

func BenchmarkDeniedByFullLog(b *testing.B) { fullLog(b, 1000, Denied) }

func fullLog(b *testing.B, amount uint64, want Code) {
	g := newRig(b, 1024)
	l := Limit{Algorithm: SlidingLog, Amount: amount, Window: 3600 * 1_000_000_000}
	q := benchRequest(1)
	q.Takes[0].Rule.Limit = l
	e := g.encode(1, q)
	var out Results
	at := uint64(1)
	next := func() {
		le.PutUint64(e[entryStamp:], at)
		at += 1000
		out.Reset()
		g.index++
		if err := g.table.Apply(g.index, e, &out); err != nil {
			b.Fatal(err)
		}
	}
	for range 1000 {
		next()
	}
	b.ReportAllocs()
	start := cpu(unix.CLOCK_PROCESS_CPUTIME_ID)
	for b.Loop() {
		next()
	}
	if out.Items[0].Code != want {
		b.Fatalf("%v, want %v", out.Items[0].Code, want)
	}
	b.ReportMetric(float64((cpu(unix.CLOCK_PROCESS_CPUTIME_ID)-start).Nanoseconds())/float64(b.N), "cpu-ns/take")
}

package bucket

import (
	"fmt"
	"io"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Times here are processor time: of the thread for single steps, of the process
// for means. Other work on the machine then matters less.

func cpu(clock int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

// step is the processor time of f on this thread; the caller has locked it.
func step(f func()) time.Duration {
	start := cpu(unix.CLOCK_THREAD_CPUTIME_ID)
	f()
	return cpu(unix.CLOCK_THREAD_CPUTIME_ID) - start
}

// filled is a table of 1,024 slots with n buckets that stay.
func filled(b *testing.B, n int) *rig {
	g := newRig(b, 1024)
	reqs := make([]Request, 500)
	for i := 0; i < n; {
		reqs = reqs[:min(500, n-i)]
		for k := range reqs {
			reqs[k] = benchRequest(uint64(i))
			i++
		}
		g.apply(int64(i), reqs...)
	}
	if g.table.Buckets() != n {
		b.Fatalf("%d buckets", g.table.Buckets())
	}
	return g
}

func benchRequest(n uint64) Request {
	k := spread(n)
	slot := uint16(k.Hi % 1024) // any bits will do: the leading ones choose the segment
	return Request{Home: slot, Takes: []Take{{Slot: slot, Key: k, Rule: Rule{Policy: 1, Version: 1, Limit: unit}, Cost: 1}}}
}

// BenchmarkApply is entries of 1, 32 and 500 takes on a million buckets; ns per
// entry, and ns/take.
func BenchmarkApply(b *testing.B) {
	const keys = 1_000_000
	for _, ids := range []string{"none", "client", "own"} {
		for _, batch := range []int{1, 32, 500} {
			b.Run(fmt.Sprintf("ids=%s/batch=%d", ids, batch), func(b *testing.B) {
				g := filled(b, keys)
				entries := benchEntries(g, ids, batch, keys)
				var out Results
				i := 0
				next := func() {
					pass := int64(1 + i/len(entries)) // in each pass the ids of the last one are forgotten
					e := entries[i%len(entries)]
					le.PutUint64(e[entryStamp:], uint64(pass*3*Horizon+int64(i)*1000))
					out.Reset()
					g.index++
					if err := g.table.Apply(g.index, e, &out); err != nil || out.Items[0].Code != Admitted {
						b.Fatal(err, out.Items[0])
					}
					i++
				}
				for range entries { // pages of records, and memory that is reused
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
}

// benchEntries are as many entries as fit 200,000 takes. Those of clients
// acknowledge what came some entries before.
func benchEntries(g *rig, ids string, batch, keys int) [][]byte {
	entries := make([][]byte, 200_000/batch)
	n, seq := uint64(0), uint64(0)
	for i := range entries {
		reqs := make([]Request, batch)
		for k := range reqs {
			n += 0x9e3779b97f4a7c15
			reqs[k] = benchRequest(n % uint64(keys))
			seq++
			switch ids {
			case "client":
				reqs[k].ID = ID{Kind: ClientID, Session: seq % 4, Sequence: seq, Acked: seq - min(seq, uint64(3*batch)), Content: seq}
			case "own":
				reqs[k].ID = own(n)
			}
		}
		entries[i] = g.encode(int64(keys)+int64(i)*1000, reqs...)
	}
	return entries
}

func BenchmarkPeek(b *testing.B) {
	const keys = 1_000_000
	g := filled(b, keys)
	var out Results
	reqs := make([]Request, 1<<16)
	for i := range reqs {
		reqs[i] = benchRequest(uint64(i) * 7919 % keys)
	}
	b.ReportAllocs()
	i := 0
	start := cpu(unix.CLOCK_PROCESS_CPUTIME_ID)
	for b.Loop() {
		out.Reset()
		g.table.Peek(0, &reqs[i%len(reqs)], &out)
		i++
	}
	b.ReportMetric(float64((cpu(unix.CLOCK_PROCESS_CPUTIME_ID)-start).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func BenchmarkBuilder(b *testing.B) {
	reqs := make([]Request, 500)
	for i := range reqs {
		reqs[i] = benchRequest(uint64(i))
		reqs[i].ID = ID{Kind: ClientID, Session: uint64(i % 4), Sequence: uint64(i + 1), Content: 7}
	}
	var builder Builder
	b.ReportAllocs()
	start := cpu(unix.CLOCK_PROCESS_CPUTIME_ID)
	for b.Loop() {
		builder.Reset()
		for i := range reqs {
			if !builder.Add(&reqs[i]) {
				b.Fatal("full")
			}
		}
		builder.Entry(5)
	}
	used := cpu(unix.CLOCK_PROCESS_CPUTIME_ID) - start
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*len(reqs)), "cpu-ns/take")
	b.ReportMetric(float64(builder.Bytes())/float64(len(reqs)), "B/take")
}

// BenchmarkMemoryPerKey fills 1,024 slots and reports the live heap per bucket
// after a collection, the longest single steps, and the collector's pause. Only
// -bench runs it; one iteration is a whole fill.
func BenchmarkMemoryPerKey(b *testing.B) {
	for _, keys := range []int{1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("keys=%dM", keys/1_000_000), func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for b.Loop() {
				before := liveHeap()
				g := newRig(b, 1024)
				growth := fill(g.table, keys)
				b.ReportMetric(float64(liveHeap()-before)/float64(keys), "B/key")
				b.ReportMetric(ms64(growth), "growth-max-ms")
				gcCost(b)
				dumpCost(b, g)
				runtime.KeepAlive(g)
			}
		})
	}
}

func ms64(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// fill inserts buckets one by one and returns the longest step of growth.
func fill(t *Table, keys int) (longest time.Duration) {
	ref := t.rules.intern(Rule{Policy: 1, Version: 1, Limit: unit})
	for i := range keys {
		k := spread(uint64(i))
		sl := &t.slots[k.Hi%1024]
		if g := sl.segment(k); g != nil && !g.crowded() {
			sl.insert(k, level{a: 5}, ref)
		} else {
			longest = max(longest, step(func() { sl.insert(k, level{a: 5}, ref) }))
		}
		t.entered(uint16(k.Hi%1024), k, ref)
	}
	return longest
}

func gcCost(b *testing.B) {
	start := time.Now()
	runtime.GC()
	b.ReportMetric(ms64(time.Since(start)), "gc-ms")
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	pause := uint64(0)
	for _, p := range m.PauseNs {
		pause = max(pause, p)
	}
	b.ReportMetric(float64(pause)/1e6, "gc-pause-max-ms")
}

// dumpCost reports how long a dump holds up its table: its beginning, the
// longest copy of one part, and the longest entry of 32 takes beside it, against
// the longest without a dump.
func dumpCost(b *testing.B, g *rig) {
	entries := benchEntries(g, "none", 32, g.table.Buckets())
	b.ReportMetric(ms64(slowest(b, g, entries[:3000])), "apply32-max-ms")
	var d *Dump
	b.ReportMetric(ms64(step(func() { d = g.table.BeginDump() })), "dump-begin-ms")
	done := make(chan time.Duration)
	go func() {
		start := time.Now()
		_, _ = d.WriteTo(io.Discard)
		done <- time.Since(start)
	}()
	longest := time.Duration(0)
	for written := false; !written; {
		longest = max(longest, slowest(b, g, entries[:100]))
		select {
		case all := <-done:
			written = true
			b.ReportMetric(ms64(all), "dump-ms")
		default:
		}
	}
	d.Close()
	b.ReportMetric(ms64(longest), "apply32-max-in-dump-ms")
	d = g.table.BeginDump()
	defer d.Close()
	longest = 0
	var scratch []byte
	for i := range d.parts {
		longest = max(longest, step(func() { scratch, _ = d.take(i, scratch[:0]) }))
	}
	b.ReportMetric(ms64(longest), "dump-step-max-ms")
}

func slowest(b *testing.B, g *rig, entries [][]byte) (longest time.Duration) {
	var out Results
	for _, e := range entries {
		out.Reset()
		g.index++
		longest = max(longest, step(func() {
			if err := g.table.Apply(g.index, e, &out); err != nil {
				b.Fatal(err)
			}
		}))
	}
	return longest
}

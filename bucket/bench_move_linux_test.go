package bucket

import (
	"runtime"
	"testing"
	"time"
)

// BenchmarkMove moves a slot of a million buckets and 100,000 results from table
// to table and clears what is left. It tells the longest single step of each kind,
// in processor time of the thread, and the size of all chunks.
func BenchmarkMove(b *testing.B) {
	const keys = 1_000_000
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for b.Loop() {
		from, to := newRig(b, 2), &rig{tb: b, table: NewTable(2)}
		for i := 0; i < keys; {
			reqs := make([]Request, 500)
			for k := range reqs {
				reqs[k] = Request{Home: 1, Takes: []Take{{Slot: 1, Key: mixed(uint64(i)), Rule: Rule{Policy: 1, Version: 1, Limit: unit}, Cost: 1}}}
				if i < keys/10 {
					reqs[k].ID = ID{Kind: ClientID, Session: uint64(i % 100), Sequence: uint64(i + 1), Content: 1}
				}
				i++
			}
			from.apply(int64(i), reqs...)
		}
		longest := map[string]time.Duration{}
		timed := func(what string, f func()) { longest[what] = max(longest[what], step(f)) }
		m, sent, size := Move{1, 1}, 0, 0
		adopt := func(c []byte, info ChunkInfo) {
			if c == nil {
				return
			}
			sent++
			size += len(c)
			e := AdoptEntry(info.SlotTime, m, info.SlotTime, c)
			timed("adopt", func() { to.entry(e) })
		}
		e, more, last := from.table.Export(1, 1), true, false
		for n := 0; more; n++ {
			var c []byte
			timed("next", func() { c, more = e.Next(64 << 10) })
			adopt(c, ChunkInfo{})
			var reqs []Request
			for k := range 50 {
				reqs = append(reqs, Request{Home: 1, Takes: []Take{{Slot: 1, Key: mixed(uint64((n*50 + k) * 7 % keys)), Rule: Rule{Policy: 1, Version: 1, Limit: unit}, Cost: 1}}})
			}
			from.apply(from.table.Time()+1000, reqs...)
		}
		changed := e.Changed()
		from.entry(SealEntry(from.table.Time(), []Move{m}))
		sealed := 0
		for !last {
			var c []byte
			timed("final", func() { c, last = e.Final(64 << 10) })
			sealed += len(c)
			adopt(c, ChunkInfo{SlotTime: from.table.Time()})
		}
		timed("own", func() { to.entry(OwnEntry(0, []Move{m})) })
		timed("forget", func() { from.entry(ForgetEntry(from.table.Time(), []Move{m})) })
		empty := emptySlot(b)
		for code := MoveAgain; code == MoveAgain; {
			timed("clear", func() { code = from.entry(AdoptEntry(from.table.Time(), Move{1, 2}, 0, empty)).Items[0].Code })
		}
		if to.table.Buckets() != keys || from.table.Buckets() != 0 {
			b.Fatalf("%d arrived, %d left", to.table.Buckets(), from.table.Buckets())
		}
		for what, d := range longest {
			b.ReportMetric(float64(d.Microseconds())/1000, what+"-ms")
		}
		b.ReportMetric(float64(size)/1e6, "MB")
		b.ReportMetric(float64(sealed)/1e6, "sealed-MB")
		b.ReportMetric(float64(changed), "changed")
		b.ReportMetric(float64(sent), "chunks")
	}
}

// mixed makes keys whose halves have nothing in common; those of spread that
// share a segment would also share a few places in it.
func mixed(n uint64) Key { return Key{Hi: fold(fold(1, n), 5), Lo: fold(fold(2, n), 9)} }

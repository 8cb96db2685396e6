package bucket

import "math/rand/v2"

// bulk writes logs of many buckets and ids, so that segments grow, split, merge
// and shrink, pages of records come and go, and chains split and merge.
type bulk struct {
	rng  *rand.Rand
	g    *rig
	now  int64
	seq  uint64
	rule [3]Rule
}

func newBulk(t tester, seed uint64) *bulk {
	b := &bulk{rng: rand.New(rand.NewPCG(seed, 1)), g: &rig{tb: t}}
	for i, l := range []Limit{per(1, 20*sec, 1), per(100, sec, 20), per(7, 60*sec, 3)} {
		b.rule[i] = Rule{Policy: uint64(i), Version: 1, Limit: l}
	}
	return b
}

// entry has n requests of keys below span, one in four with two takes.
func (b *bulk) entry(n int, span uint64, slots int, step int64) []byte {
	reqs := make([]Request, n)
	acked := b.seq - min(b.seq, uint64(b.rng.IntN(3*n+1)))
	for i := range reqs {
		r := &reqs[i]
		r.Home = uint16(b.rng.IntN(slots))
		for range 1 + b.rng.IntN(4)/3 {
			key := b.rng.Uint64N(span)
			r.Takes = append(r.Takes, Take{Slot: r.Home, Key: spread(key), Rule: b.rule[key%3], Cost: b.rng.Uint64N(4)})
		}
		switch b.rng.IntN(3) {
		case 0:
			b.seq++
			seq := b.seq - min(b.seq-1, uint64(b.rng.IntN(20)*b.rng.IntN(2)))
			r.ID = ID{Kind: ClientID, Session: 1 + seq%3, Sequence: seq, Acked: acked, Content: seq}
		case 1:
			own := b.rng.Uint64N(1 << 16)
			r.ID = ID{Kind: OwnID, Own: spread(own), Content: own}
		}
	}
	b.now += b.rng.Int64N(step)
	return b.g.encode(b.now, reqs...)
}

// log is entries that fill three slots, let them drain, and fill them again.
func (b *bulk) log(scale int) [][]byte {
	const slots = 3
	log := [][]byte{HoldEntry(0, []uint16{0, 1, 2})}
	for _, phase := range []struct {
		entries, requests int
		span              uint64
		step              int64
		sweep             int
	}{
		{60, 600, 60_000, ms, 0},
		{20, 10, 100, 20 * sec, 30_000},
		{20, 300, 6_000, 10 * ms, 100},
		{20, 100, 60_000, sec, 300},
		{30, 5, 20, 40 * sec, 60_000},
		{5, 300, 20_000, sec, 10},
	} {
		for range phase.entries * scale {
			log = append(log, b.entry(phase.requests, phase.span, slots, phase.step))
			if phase.sweep > 0 {
				log = append(log, StampEntry(b.now, phase.sweep))
			}
		}
	}
	return log
}

package bucket

import "math"

// slidingLog is the hard count: what was admitted in (now − window, now] never
// exceeds amount. It keeps its entries, time and cost, oldest first, in records
// of the pool (logrecord.go). Its level: last is the first and the last record,
// a the cost of all entries, b their number and mergedBit.
//
// Up to logExact entries are exact. With more they merge into cells of
// window/1000: an entry's time becomes the later edge of its cell, so it counts
// for up to that much longer and never shorter. When they are few again, new
// entries are exact.
type slidingLog struct{}

const (
	logExact  = 1000 // entries
	logFew    = logExact / 2
	logParts  = 1000    // of a window
	mergedBit = 1 << 31 // new entries go to the edges of cells
)

// grain is the length of a cell.
func (l *Limit) grain() int64 { return max(l.Window/logParts, 1) }

// edge is the first edge of a cell at or after t.
func (l *Limit) edge(t int64) int64 {
	if rest := t % l.grain(); rest > 0 {
		return after(t, l.grain()-rest)
	}
	return t
}

// out says whether an entry of time t no longer counts at now.
func (x *site) out(l *Limit, t, now int64) bool {
	return t < x.floor || age(t, now) >= uint64(l.Window)
}

func (slidingLog) blank(*Limit, int64) level { return level{} }

// view has as last the time of the newest entry that counts, as a their cost.
func (slidingLog) view(x *site, l *Limit, now int64) level {
	if x.lump > 0 && !x.out(l, x.lumpAt, now) {
		return level{last: x.lumpAt, a: x.lump}
	}
	v := level{a: x.raw.a}
	at := x.log()
	for ; at.ok() && x.out(l, at.time(), now); at.next() {
		v.a = uint32(less(uint64(v.a), uint64(at.cost())))
	}
	if !at.ok() {
		return level{}
	}
	if newest := x.newest(); newest.cost() > 0 {
		v.last = newest.time()
		return v
	}
	for ; at.ok(); at.next() { // some were refunded
		if at.cost() > 0 {
			v.last = at.time()
		}
	}
	return v
}

func (slidingLog) room(l *Limit, v level, _ int64) uint64 { return less(l.Amount, uint64(v.a)) }

func (slidingLog) wait(x *site, l *Limit, v level, need uint64, now int64) int64 {
	until := func(t int64) int64 { return l.Window - int64(age(t, now)) + max(t-now, 0) }
	excess := less(uint64(v.a)+need, l.Amount)
	if x.lump > 0 {
		return until(x.lumpAt)
	}
	for at := x.log(); at.ok(); at.next() {
		if x.out(l, at.time(), now) {
			continue
		}
		if uint64(at.cost()) >= excess {
			return until(at.time())
		}
		excess -= uint64(at.cost())
	}
	return l.Window
}

func (slidingLog) reset(_ *site, l *Limit, v level, now int64) int64 {
	if v.a == 0 {
		return 0
	}
	return l.Window - int64(age(v.last, now)) + max(v.last-now, 0)
}

func (k slidingLog) spend(x *site, l *Limit, v level, cost uint64, now int64) (level, uint64) {
	if cost == 0 {
		return v, 0
	}
	v.a += uint32(cost)
	if x.commit {
		x.prune(l, now)
		v.last = x.append(l, now, uint32(cost))
	} else {
		v.last = x.wouldAppend(l, now)
	}
	return v, 0
}

// wouldAppend is the time that append would return, the list not being pruned.
func (x *site) wouldAppend(l *Limit, now int64) int64 {
	n, at := x.raw.b&^mergedBit, x.log()
	for ; at.ok() && x.out(l, at.time(), now); at.next() {
		n--
	}
	if !at.ok() {
		return now
	}
	newest := x.newest()
	if x.raw.b&mergedBit != 0 && n >= logFew || n >= logExact && newest.time() < now {
		now = l.edge(now)
	}
	return max(now, newest.time())
}

// append adds an entry at the end of a pruned list and returns its time.
func (x *site) append(l *Limit, now int64, cost uint32) int64 {
	if x.raw.b&^mergedBit < logFew {
		x.raw.b &^= mergedBit
	}
	if x.raw.b&mergedBit != 0 {
		now = l.edge(now)
	}
	x.push(now, cost)
	if x.raw.b > logExact && x.raw.b&mergedBit == 0 {
		x.merge(l)
	}
	return x.newest().time()
}

// merge moves all entries to the edges of their cells.
func (x *site) merge(l *Limit) {
	old := x.raw
	x.raw = level{}
	for at := (logPlace{s: x.s, record: ends(old).first}).start(); at.ok(); at.next() {
		x.push(l.edge(at.time()), at.cost())
	}
	x.s.freeLog(old)
	x.raw.b |= mergedBit
}

// credit takes c from the entry that was charged, exact or at the edge of its cell.
func (slidingLog) credit(x *site, l *Limit, c *credit, now int64) {
	x.prune(l, now)
	for at := x.log(); at.ok(); at.next() {
		if at.time() < c.at {
			continue
		}
		if at.time() > l.edge(c.at) {
			return
		}
		n := uint32(min(c.cost, uint64(at.cost())))
		at.setCost(at.cost() - n)
		x.raw.a -= min(n, x.raw.a)
		return
	}
}

func (k slidingLog) fresh(x *site, l *Limit, now int64) bool { return k.view(x, l, now).a == 0 }

func (k slidingLog) used(x *site, l *Limit, at int64) uint64 { return uint64(k.view(x, l, at).a) }

// carry drops what is out under from, and keeps the rest with its times.
func (slidingLog) carry(x *site, from, _ *Limit, at int64) {
	if x.lump > 0 && x.out(from, x.lumpAt, at) {
		x.lump = 0
	}
	x.floor = max(x.floor, at-from.Window+1)
}

func (slidingLog) begin(x *site, _ *Limit, used uint64, at int64) {
	x.raw, x.floor = level{}, 0
	x.lump, x.lumpAt = uint32(min(used, math.MaxUint32)), at
}

func (slidingLog) settle(x *site, l *Limit, now int64) {
	x.prune(l, now)
	if x.lump > 0 && !x.out(l, x.lumpAt, now) {
		x.append(l, x.lumpAt, x.lump)
	}
	x.floor, x.lump = 0, 0
}

func (slidingLog) free(x *site) {
	x.s.freeLog(x.raw)
	x.raw = level{}
}

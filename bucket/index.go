package bucket

import "math/bits"

// index finds records by what they stand for: linear hashing, so that it grows
// and shrinks by one chain at a time and never stalls. Its heads are numbers of
// records in pages; a chain goes on through the records themselves.
type index struct {
	heads []*block // of headsPage numbers each
	n     uint32   // chains, ≥ minHeads, 2 … 4 times as many as records
	count uint32   // records in all chains
}

const (
	headsPageLog = 12
	headsPage    = 1 << headsPageLog
	minHeads     = headsPage
)

func newIndex() index {
	return index{heads: []*block{newHeads()}, n: minHeads}
}

func newHeads() *block { return &block{buf: make([]byte, headsPage*4)} }

// chain is the chain of a hash: its low bits, as many as there are chains for.
func (x *index) chain(hash uint64) uint32 {
	level := uint32(1) << (bits.Len32(x.n) - 1) // n = level + chains already split
	if c := uint32(hash) & (2*level - 1); c < x.n {
		return c
	}
	return uint32(hash) & (level - 1)
}

func (x *index) head(chain uint32) uint32 {
	return le.Uint32(x.heads[chain>>headsPageLog].buf[chain%headsPage*4:])
}

func (x *index) setHead(chain, n uint32) {
	b := x.heads[chain>>headsPageLog]
	at := int(chain % headsPage * 4)
	b.touch(at, 4)
	le.PutUint32(b.buf[at:], n)
}

// add puts record n with that hash first in its chain.
func (x *index) add(p *pool, n uint32, hash uint64) {
	c := x.chain(hash)
	le.PutUint32(p.edit(n)[recordNext:], x.head(c))
	x.setHead(c, n)
	x.count++
	for range 2 {
		if x.count > x.n/2 {
			x.split(p)
		}
	}
}

// drop takes record n with that hash out of its chain.
func (x *index) drop(p *pool, n uint32, hash uint64) {
	c := x.chain(hash)
	next := le.Uint32(p.view(n)[recordNext:])
	if at := x.head(c); at == n {
		x.setHead(c, next)
	} else {
		for le.Uint32(p.view(at)[recordNext:]) != n {
			at = le.Uint32(p.view(at)[recordNext:])
		}
		le.PutUint32(p.edit(at)[recordNext:], next)
	}
	x.count--
	for range 4 {
		if x.n > minHeads && x.count < x.n/4 {
			x.merge(p)
		}
	}
}

// split adds a chain and moves to it what belongs there from the chain it halves.
func (x *index) split(p *pool) {
	if x.n == 1<<31 {
		return
	}
	if int(x.n>>headsPageLog) == len(x.heads) {
		x.heads = append(x.heads, newHeads())
	}
	added := x.n
	old := added &^ (1 << (bits.Len32(added) - 1))
	x.n++
	at := x.head(old)
	x.setHead(old, noRecord)
	x.setHead(added, noRecord)
	var last [2]uint32 // keeps the order within both chains
	for at != noRecord {
		next := le.Uint32(p.view(at)[recordNext:])
		to, side := old, 0
		if x.chain(recordHash(p.view(at))) == added {
			to, side = added, 1
		}
		le.PutUint32(p.edit(at)[recordNext:], noRecord)
		if last[side] == noRecord {
			x.setHead(to, at)
		} else {
			le.PutUint32(p.edit(last[side])[recordNext:], at)
		}
		last[side], at = at, next
	}
}

// merge appends the last chain to the one it once came from.
func (x *index) merge(p *pool) {
	x.n--
	gone := x.n
	moved := x.head(gone)
	x.setHead(gone, noRecord)
	into := gone &^ (1 << (bits.Len32(gone) - 1))
	if at := x.head(into); at == noRecord {
		x.setHead(into, moved)
	} else {
		for le.Uint32(p.view(at)[recordNext:]) != noRecord {
			at = le.Uint32(p.view(at)[recordNext:])
		}
		le.PutUint32(p.edit(at)[recordNext:], moved)
	}
	if pages := int((x.n-1)>>headsPageLog) + 1; pages < len(x.heads) {
		x.heads[pages] = nil
		x.heads = x.heads[:pages]
	}
}

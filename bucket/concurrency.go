package bucket

// concurrency is permits in flight: at most amount units. A permit is granted
// for the cost of one take, counts until it is released or until its deadline,
// one window after it was granted or renewed, and is a record of the pool
// (permit.go). Its level: last is the permit that expires first and the one
// that expires last, a the units of all.
//
// Whether a permit has expired is told by its deadline alone: it counts while
// now < deadline, wherever the sweep is.
type concurrency struct{}

func (concurrency) blank(*Limit, int64) level { return level{} }

// view has as last the latest deadline, as a the units in flight.
func (concurrency) view(x *site, _ *Limit, now int64) level {
	if x.lump > 0 && x.lumpAt > now {
		return level{last: x.lumpAt, a: x.lump}
	}
	e, v := ends(x.raw), level{a: x.raw.a}
	n := e.first
	for ; n != noRecord; n = x.s.ids.permit(n).younger {
		p := x.s.ids.permit(n)
		if p.deadline > now {
			break
		}
		v.a = uint32(less(uint64(v.a), uint64(p.units)))
	}
	if n == noRecord {
		return level{}
	}
	v.last = x.s.ids.permit(e.last).deadline
	return v
}

func (concurrency) room(l *Limit, v level, _ int64) uint64 { return less(l.Amount, uint64(v.a)) }

func (concurrency) wait(x *site, l *Limit, v level, need uint64, now int64) int64 {
	excess := less(uint64(v.a)+need, l.Amount)
	if x.lump > 0 {
		return x.lumpAt - now
	}
	for n := ends(x.raw).first; n != noRecord; {
		p := x.s.ids.permit(n)
		if n = p.younger; p.deadline <= now {
			continue
		}
		if uint64(p.units) >= excess {
			return p.deadline - now
		}
		excess -= uint64(p.units)
	}
	return l.Window
}

func (concurrency) reset(_ *site, _ *Limit, v level, now int64) int64 {
	if v.a == 0 {
		return 0
	}
	return v.last - now
}

func (concurrency) spend(x *site, l *Limit, v level, cost uint64, now int64) (level, uint64) {
	if cost == 0 {
		return v, 0
	}
	deadline, token := after(now, l.Window), uint64(0)
	v.a += uint32(cost)
	v.last = max(v.last, deadline)
	if x.commit {
		x.expire(now)
		token = x.grant(uint32(cost), deadline)
	}
	return v, token
}

// credit takes c from the permit that was granted, if it is still held.
func (concurrency) credit(x *site, _ *Limit, c *credit, now int64) {
	x.expire(now)
	n := x.held(permitID(x.slot, c.token), now)
	if c.token == 0 || n == noRecord {
		return
	}
	units := x.s.ids.permit(n).units
	if c.cost >= uint64(units) {
		x.release(n)
		return
	}
	x.raw.a -= uint32(c.cost)
	le.PutUint32(x.s.ids.pool.edit(n)[permitUnits:], units-uint32(c.cost))
}

func (k concurrency) fresh(x *site, l *Limit, now int64) bool { return k.view(x, l, now).a == 0 }

func (k concurrency) used(x *site, l *Limit, at int64) uint64 { return uint64(k.view(x, l, at).a) }

// carry leaves the permits as they are, with their deadlines.
func (concurrency) carry(*site, *Limit, *Limit, int64) {}

// begin holds what was used in one permit of nobody, for one window.
func (concurrency) begin(x *site, l *Limit, used uint64, at int64) {
	x.raw = level{}
	x.lump, x.lumpAt = uint32(min(used, MaxAmount)), after(at, l.Window)
}

func (concurrency) settle(x *site, _ *Limit, now int64) {
	x.expire(now)
	if x.lump > 0 && x.lumpAt > now {
		x.permit(x.lump, x.lumpAt, 0)
	}
	x.lump = 0
}

func (concurrency) free(x *site) {
	for n := ends(x.raw).first; n != noRecord; {
		next := x.s.ids.permit(n).younger
		x.s.ids.free(n)
		n = next
	}
	x.raw = level{}
}

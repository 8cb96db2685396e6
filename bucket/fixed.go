package bucket

// fixedWindow counts the cost of one window. Its level: a is the count of the
// window that began at last. Around an edge twice the amount can pass.
type fixedWindow struct{ plain }

func (fixedWindow) blank(*Limit, int64) level { return level{} }

func (fixedWindow) view(x *site, l *Limit, now int64) level {
	if x.raw.a != 0 && uint64(now)-uint64(x.raw.last) < uint64(l.Window) {
		return x.raw
	}
	return level{last: x.windowStart(l, now)}
}

func (fixedWindow) room(l *Limit, v level, _ int64) uint64 { return less(l.Amount, uint64(v.a)) }

func (fixedWindow) wait(_ *site, l *Limit, v level, _ uint64, now int64) int64 {
	return l.Window - (now - v.last)
}

func (k fixedWindow) reset(x *site, l *Limit, v level, now int64) int64 {
	if v.a == 0 {
		return 0
	}
	return k.wait(x, l, v, 0, now)
}

func (fixedWindow) spend(x *site, _ *Limit, v level, cost uint64, _ int64) (level, uint64) {
	v.a += uint32(cost)
	x.raw = v
	return v, 0
}

// credit counts only in the window that was charged.
func (k fixedWindow) credit(x *site, l *Limit, c *credit, now int64) {
	if x.raw = k.view(x, l, now); c.at >= x.raw.last {
		x.raw.a = uint32(less(uint64(x.raw.a), c.cost))
	}
}

func (fixedWindow) fresh(x *site, l *Limit, now int64) bool {
	return x.raw.a == 0 || uint64(now)-uint64(x.raw.last) >= uint64(l.Window)
}

func (k fixedWindow) used(x *site, l *Limit, at int64) uint64 { return uint64(k.view(x, l, at).a) }

func (k fixedWindow) carry(x *site, from, to *Limit, at int64) {
	if from.Window != to.Window {
		k.begin(x, to, k.used(x, from, at), at)
	}
}

func (fixedWindow) begin(x *site, l *Limit, used uint64, at int64) {
	x.raw = level{last: x.windowStart(l, at), a: uint32(min(used, MaxAmount))}
}

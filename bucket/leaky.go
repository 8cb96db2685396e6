package bucket

// leakyBucket is a queue that drains amount per window and holds up to burst.
// It mirrors the token bucket, and uses its arithmetic: the level is that of a
// token bucket of leakyTop tokens, the backlog what is missing there. Only the
// uppermost burst of them may be taken.
//
// So a changed burst leaves the backlog, and with it the delays already given
// out, as it is: it may for a while exceed a lowered one.
type leakyBucket struct{ plain }

const leakyTop = MaxAmount

// top is the token bucket that l mirrors. Its amount is not 0.
func (l *Limit) top() Limit {
	return Limit{Algorithm: TokenBucket, Amount: l.Amount, Burst: leakyTop, Window: l.Window}
}

func (leakyBucket) blank(_ *Limit, now int64) level { return level{last: now, a: leakyTop} }

func (leakyBucket) view(x *site, l *Limit, now int64) level {
	if l.Amount == 0 { // nothing drains; without a fraction the time may move on
		if x.raw.last < now {
			return level{last: now, a: x.raw.a}
		}
		return x.raw
	}
	top := l.top()
	return top.advance(x.raw, now)
}

func (leakyBucket) room(l *Limit, v level, _ int64) uint64 {
	return less(l.Capacity(), less(leakyTop, uint64(v.a)))
}

func (leakyBucket) wait(_ *site, l *Limit, v level, need uint64, now int64) int64 {
	top := l.top()
	return top.wait(v, leakyTop-l.Capacity()+need, now)
}

func (k leakyBucket) reset(x *site, l *Limit, v level, now int64) int64 {
	if l.Amount == 0 {
		if k.fresh(x, l, now) {
			return 0
		}
		return x.thaw - now
	}
	top := l.top()
	return top.wait(v, leakyTop, now)
}

func (k leakyBucket) spend(x *site, l *Limit, v level, cost uint64, now int64) (level, uint64) {
	delay := k.reset(x, l, v, now) // of the backlog before this take
	v.a -= uint32(cost)
	x.raw = v
	return v, uint64(delay)
}

func (k leakyBucket) credit(x *site, l *Limit, c *credit, now int64) {
	v := k.view(x, l, now)
	if x.raw = v; uint64(v.a)+c.cost >= leakyTop {
		x.raw = k.blank(l, max(now, v.last))
		return
	}
	x.raw.a += uint32(c.cost)
}

func (leakyBucket) fresh(x *site, l *Limit, now int64) bool {
	if l.Amount == 0 { // the backlog stays, but not for ever
		return x.raw.a >= leakyTop || now >= x.thaw
	}
	top := l.top()
	return top.fresh(x.raw, now)
}

func (k leakyBucket) used(x *site, l *Limit, at int64) uint64 {
	if k.fresh(x, l, at) {
		return 0
	}
	return less(leakyTop, uint64(k.view(x, l, at).a))
}

// carry leaves the backlog as it is; its fraction is rounded up, once.
func (k leakyBucket) carry(x *site, from, to *Limit, at int64) {
	switch {
	case k.fresh(x, from, at):
		x.raw = k.blank(to, at)
	case from.Amount == 0 || to.Amount == 0:
		x.raw = k.view(x, from, at)
		x.raw.b, x.raw.last = 0, max(at, x.raw.last)
	default:
		old, top := from.top(), to.top()
		x.raw = old.rebase(x.raw, &top, at)
	}
}

func (k leakyBucket) begin(x *site, l *Limit, used uint64, at int64) {
	x.raw = k.blank(l, at)
	x.raw.a -= uint32(min(used, leakyTop))
}

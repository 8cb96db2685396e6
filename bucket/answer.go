package bucket

// answer appends the answer of each take to out.
func (t *Table) answer(asks []ask, uses []use, out *Results) {
	for i := range asks {
		d := &t.judge.verdicts[i]
		k := &t.judge.tallies[d.tally]
		u := &uses[k.use]
		out.Answers = append(out.Answers, Answer{
			Rule: u.Rule, Allowed: d.reason == ReasonNone, Reason: d.reason, Shadow: asks[i].shadow,
			Capacity: u.Limit.Capacity(), RetryAfter: d.retry,
		})
		a := &out.Answers[len(out.Answers)-1]
		a.hold(&k.site, &u.Limit, k.view, k.now)
		if d.extra != 0 {
			a.extend(d.extra, k.slot)
		}
	}
}

// hold says in a what a bucket holds at now.
func (a *Answer) hold(x *site, l *Limit, v level, now int64) {
	k := l.kind()
	a.Remaining = k.room(l, v, now)
	a.ResetAfter = k.reset(x, l, v, now)
}

// extend puts into a what only some algorithms give; see kind.spend.
func (a *Answer) extend(extra uint64, slot uint16) {
	switch {
	case extra == 0:
	case a.Rule.Limit.Algorithm == LeakyBucket:
		a.Delay = int64(extra)
	case a.Rule.Limit.Algorithm == Concurrency:
		a.PermitID, a.FencingToken = permitID(slot, extra), extra
	case a.Rule.Limit.Algorithm.Leasable():
		a.Units, a.UnitCost = leased(extra)
	}
}

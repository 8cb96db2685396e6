package bucket

// tally is what one request asks of one bucket.
type tally struct {
	site
	spent uint64 // sum of the costs that are to be charged so far
	view  level  // of site at the time of judging; after a charge: what is left
	seg   *segment
	off   int    // of the cell in seg
	use   uint32 // index in uses
	found bool   // there is a cell
	firm  bool   // a take that is no shadow spends here
}

// verdict is what one take gets, before it is known what the whole request gets.
type verdict struct {
	retry  int64
	extra  uint64 // see kind.spend
	tally  int
	reason Reason
}

// judge is memory for one request, reused.
type judge struct {
	group    int64  // ns of group time
	now      int64  // ns of slot time of the request's home
	session  uint32 // record of the id's session
	units    uint64 // that the request leases; 0: it is no lease
	tallies  []tally
	verdicts []verdict
	stored   []stored
	permit   [1]ask // of a release or a renewal
}

// decide judges one request at t.judge.group and appends its Result to out. With commit
// it also charges, remembers the id, and obeys its acknowledgement.
func (t *Table) decide(j *job, w *work, out *Results, commit bool) {
	asks := w.asks[j.first : j.first+j.count]
	t.judge.now = t.timeIn(j.home)
	r := Result{Code: NotHeld, First: int32(len(out.Answers)), SlotTime: t.judge.now}
	switch {
	case !t.holdsAll(j, asks):
	case j.op == OpRelease || j.op == OpRenew:
		r.Code = t.permit(j, &asks[0], w.uses, out)
	default:
		var kept uint32
		r.Code, kept = t.standing(j, commit)
		switch {
		case !j.op.takes():
			r.Code = t.giveBack(j, r.Code, kept, out)
		case r.Code == Repeated:
			r.SlotTime = t.ids.time(kept)
			r.Age = max(0, t.judge.now-r.SlotTime)
			r.Code = t.repeat(kept, asks, w.uses, out)
		case r.Code == Denied:
			r.Code = t.fresh(j, asks, w.uses, out, commit)
		}
	}
	r.Count = int32(len(out.Answers)) - r.First
	out.Items = append(out.Items, r)
}

// timeIn is the slot time of a slot at t.judge.group.
func (t *Table) timeIn(slot uint16) int64 {
	if int(slot) >= len(t.slots) {
		return t.judge.group
	}
	return t.slots[slot].time(t.judge.group)
}

func (t *Table) holdsAll(j *job, asks []ask) bool {
	if !t.holds(j.home) {
		return false
	}
	for i := range asks {
		if asks[i].slot != j.home && !t.holds(asks[i].slot) {
			return false
		}
	}
	return true
}

// standing says what j's id is, see ids.standing; with commit it obeys its
// acknowledgement.
func (t *Table) standing(j *job, commit bool) (Code, uint32) {
	s := t.ids.sessionOf(j.home, &j.id, j.session)
	if commit {
		s = t.ids.acknowledge(s, &t.slots[j.home].own, &j.id, &t.rules, t.judge.now)
	}
	t.judge.session = s
	code, n := t.ids.standing(j.home, &j.id, s, j.op, t.judge.now)
	if sl := &t.slots[j.home]; code == Denied && sl.born != notBorn && sl.before(&j.id, t.judge.now) {
		code = TooOld
	}
	return code, n
}

// fresh judges a request that was not admitted before.
func (t *Table) fresh(j *job, asks []ask, uses []use, out *Results, commit bool) Code {
	t.judge.units = 0
	if j.op == OpLease && !leasable(asks, uses) {
		return NotLeasable
	}
	if !t.current(asks, uses, commit) {
		return PolicyStale
	}
	code, cost := t.weigh(asks, uses, commit), uint64(0)
	if code == PolicyStale {
		return code
	}
	if j.op == OpLease && code == Admitted {
		t.lease(j, asks, uses, commit)
	}
	for i := range t.judge.tallies {
		k := &t.judge.tallies[i]
		if j.noNew && k.spent > 0 && k.untouched(uses) {
			if code == Admitted && k.firm {
				return StoreFull
			}
			k.spent = 0 // shadows make no new bucket either
		}
		cost += k.spent
	}
	if code == Admitted && cost > 0 && !t.ids.roomFor(&t.slots[j.home].own, &j.id, t.judge.now) {
		return StoreFull
	}
	if code == Admitted {
		t.charge(asks, uses, commit)
	}
	first := len(out.Answers)
	t.answer(asks, uses, out)
	if commit && code == Admitted && cost > 0 && j.id.Kind != NoID {
		t.remember(j, asks, uses, out.Answers[first:])
	}
	return code
}

// untouched says whether a bucket is as good as absent.
func (k *tally) untouched(uses []use) bool {
	l := &uses[k.use].Limit
	return !k.found || l.kind().fresh(&k.site, l, k.now)
}

// current says whether no take names an older version of a policy than is known
// here, or than another take does. With commit, newer ones are cut over to.
func (t *Table) current(asks []ask, uses []use, commit bool) bool {
	known := true
	for i := range asks {
		u := &uses[asks[i].use]
		if t.rules.stand(u) == staleRule {
			return false
		}
		known = known && u.ref != 0
	}
	if known {
		return true
	}
	for i := range asks {
		for k := range asks[:i] {
			a, b := &uses[asks[i].use], &uses[asks[k].use]
			if a.Policy == b.Policy && a.Version != b.Version {
				return false
			}
		}
	}
	for i := range asks {
		if u := &uses[asks[i].use]; commit && t.rules.stand(u) == newerRule {
			t.rules.refer(u)
		}
	}
	return true
}

// weigh fills the tallies and verdicts of a request: Admitted if all takes pass
// that are no shadows. Takes on one bucket are weighed together, each with those
// before it; a look asks for one token more than they. PolicyStale: two takes on
// one bucket name different rules.
func (t *Table) weigh(asks []ask, uses []use, commit bool) Code {
	v := &t.judge
	v.tallies, v.verdicts = v.tallies[:0], v.verdicts[:0]
	code := Admitted
	for i := range asks {
		a := &asks[i]
		at := t.tally(a, uses, commit)
		if at < 0 {
			return PolicyStale
		}
		k := &v.tallies[at]
		limit := &uses[k.use].Limit
		d := verdict{tally: at}
		need := k.spent + max(a.cost, 1)
		switch {
		case limit.Amount == 0:
			d.reason, d.retry = ReasonNothingAllowed, -1
		case need > limit.Capacity():
			d.reason, d.retry = ReasonCostExceedsCapacity, -1
		case need > limit.kind().room(limit, k.view, k.now):
			d.reason, d.retry = ReasonRateLimited, limit.kind().wait(&k.site, limit, k.view, need, k.now)
		}
		if d.reason == ReasonNone || !a.shadow {
			k.spent += a.cost
			k.firm = k.firm || !a.shadow && a.cost > 0
		}
		if d.reason != ReasonNone && !a.shadow {
			code = Denied
		}
		v.verdicts = append(v.verdicts, d)
	}
	return code
}

// tally is the index of the tally of a's bucket; −1: it is under another rule.
func (t *Table) tally(a *ask, uses []use, commit bool) int {
	v := &t.judge
	for i := range v.tallies {
		k := &v.tallies[i]
		if k.key != a.key || k.slot != a.slot {
			continue
		}
		if k.use != a.use && uses[k.use].Rule != uses[a.use].Rule {
			return -1
		}
		return i
	}
	at := len(v.tallies)
	if at == cap(v.tallies) {
		v.tallies = append(v.tallies, tally{})
	}
	v.tallies = v.tallies[:at+1]
	k := &v.tallies[at]
	*k = tally{use: a.use}
	k.s, k.key, k.slot, k.commit, k.now = &t.state, a.key, a.slot, commit, t.timeIn(a.slot)
	t.look(k, &uses[a.use])
	return at
}

// look finds k's bucket and its view at now. With commit a cell under another
// rule is moved to u's.
func (t *Table) look(k *tally, u *use) {
	if k.seg = t.slots[k.slot].segment(k.key); k.seg != nil {
		k.off, k.found = k.seg.find(k.key)
	}
	if !k.found {
		k.absent(&u.Rule)
		k.view = u.Limit.kind().view(&k.site, &u.Limit, k.now)
		return
	}
	var ref uint32
	k.raw, ref = k.seg.read(k.off)
	switch {
	case ref == u.ref && ref != 0:
		k.thaw = k.thawOf(&t.rules.list[ref-1])
	case k.commit:
		k.reprice(k.seg, k.off, ref, u)
	default:
		k.price(ref, u)
	}
	k.view = u.Limit.kind().view(&k.site, &u.Limit, k.now)
}

// charge takes from each bucket what it can afford; the tallies then hold what
// is left.
func (t *Table) charge(asks []ask, uses []use, commit bool) {
	for i := range asks {
		d := &t.judge.verdicts[i]
		k := &t.judge.tallies[d.tally]
		if d.reason != ReasonNone || k.spent == 0 && asks[i].cost > 0 {
			continue
		}
		limit := &uses[k.use].Limit
		k.view, d.extra = limit.kind().spend(&k.site, limit, k.view, asks[i].cost, k.now)
		if n := t.judge.units; n > 0 {
			d.extra = leaseExtra(n, asks[i].cost/n)
		}
	}
	if !commit {
		return
	}
	resized := false // then the offsets found before no longer count
	for i := range t.judge.tallies {
		k := &t.judge.tallies[i]
		if k.spent == 0 {
			continue
		}
		ref := t.rules.refer(&uses[k.use])
		sl := &t.slots[k.slot]
		sl.changed(k.key)
		if !k.found {
			sl.insert(k.key, k.raw, ref)
			t.entered(k.slot, k.key, ref)
			resized = true
			continue
		}
		if resized {
			k.seg = sl.segment(k.key)
			k.off, _ = k.seg.find(k.key)
		}
		k.seg.write(k.off, k.key, k.raw, ref)
	}
}

package bucket

// tally is what one request asks of one bucket.
type tally struct {
	key   Key
	spent uint64 // sum of the costs asked so far
	state level  // at the time of judging, under use; after a charge: what is left
	seg   *segment
	off   int    // of the cell in seg
	use   uint32 // index in uses
	slot  uint16
	found bool // there is a cell
	fresh bool // absent or full
}

// verdict is what one take gets, before it is known what the whole request gets.
type verdict struct {
	retry  int64
	tally  int
	reason Reason
}

// judge is memory for one request, reused.
type judge struct {
	now      int64  // ns of slot time; slots share the group's time
	session  uint32 // record of the id's session
	tallies  []tally
	verdicts []verdict
	stored   []stored
}

// decide judges one request at t.judge.now and appends its Result to out. With commit
// it also charges, remembers the id, and obeys its acknowledgement.
func (t *Table) decide(j *job, w *work, out *Results, commit bool) {
	asks := w.asks[j.first : j.first+j.count]
	r := Result{Code: NotHeld, First: int32(len(out.Answers)), SlotTime: t.judge.now}
	if t.holdsAll(j, asks) {
		s := t.ids.sessionOf(j.home, &j.id, j.session)
		if commit {
			s = t.ids.acknowledge(s, &t.slots[j.home].own, &j.id, t.judge.now)
		}
		t.judge.session = s
		var kept uint32
		r.Code, kept = t.ids.standing(j.home, &j.id, s, t.judge.now)
		switch r.Code {
		case Repeated:
			r.SlotTime = t.ids.time(kept)
			t.repeat(kept, out)
		case Denied:
			r.Code = t.fresh(j, asks, w.uses, out, commit)
		}
	}
	r.Count = int32(len(out.Answers)) - r.First
	out.Items = append(out.Items, r)
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

// repeat appends the stored answers of result n to out.
func (t *Table) repeat(n uint32, out *Results) {
	t.judge.stored = t.ids.recall(n, t.judge.stored[:0])
	for _, s := range t.judge.stored {
		rule := t.rules.rule(s.rule)
		out.Answers = append(out.Answers, Answer{
			Rule: *rule, Allowed: true, Capacity: rule.Limit.Capacity(),
			Remaining: uint64(s.remaining), ResetAfter: s.reset,
		})
	}
}

// fresh judges a request that was not admitted before.
func (t *Table) fresh(j *job, asks []ask, uses []use, out *Results, commit bool) Code {
	code, cost := t.weigh(asks, uses), uint64(0)
	for i := range t.judge.tallies {
		k := &t.judge.tallies[i]
		cost += k.spent
		if code == Admitted && j.noNew && k.fresh && k.spent > 0 {
			return StoreFull
		}
	}
	if code == Admitted && cost > 0 && !t.ids.roomFor(t.slots[j.home].own, &j.id, t.judge.now) {
		return StoreFull
	}
	if code == Admitted {
		t.charge(uses, commit)
	}
	first := len(out.Answers)
	t.answer(asks, uses, out)
	if commit && code == Admitted && cost > 0 && j.id.Kind != NoID {
		t.remember(j, asks, uses, out.Answers[first:])
	}
	return code
}

// weigh fills the tallies and verdicts of a request: Admitted if all takes pass.
// Takes on one bucket are weighed together, each with those before it; a look
// asks for one token more than they.
func (t *Table) weigh(asks []ask, uses []use) Code {
	v := &t.judge
	v.tallies, v.verdicts = v.tallies[:0], v.verdicts[:0]
	code := Admitted
	for i := range asks {
		a := &asks[i]
		at := t.tally(a, uses)
		k := &v.tallies[at]
		limit := &uses[k.use].Limit
		k.spent += min(a.cost, MaxAmount+1)
		need := k.spent
		if a.cost == 0 {
			need++
		}
		d := verdict{tally: at}
		switch {
		case limit.Amount == 0:
			d.reason, d.retry = ReasonNothingAllowed, -1
		case need > limit.Capacity():
			d.reason, d.retry = ReasonCostExceedsCapacity, -1
		case need > uint64(k.state.tokens):
			d.reason, d.retry = ReasonRateLimited, limit.wait(k.state, need, t.judge.now)
		}
		if d.reason != ReasonNone {
			code = Denied
		}
		v.verdicts = append(v.verdicts, d)
	}
	return code
}

// tally is the index of the tally of a's bucket, under a's rule from here on.
func (t *Table) tally(a *ask, uses []use) int {
	v := &t.judge
	for i := range v.tallies {
		k := &v.tallies[i]
		if k.key != a.key || k.slot != a.slot {
			continue
		}
		if k.use != a.use && uses[k.use].Rule != uses[a.use].Rule {
			k.state = uses[k.use].Limit.rebase(k.state, &uses[a.use].Limit, t.judge.now)
		}
		k.use = a.use
		return i
	}
	v.tallies = append(v.tallies, t.look(a, &uses[a.use]))
	return len(v.tallies) - 1
}

// look finds a's bucket and its level at now. An absent one is full.
func (t *Table) look(a *ask, u *use) tally {
	k := tally{key: a.key, use: a.use, slot: a.slot, fresh: true}
	if k.seg = t.slots[a.slot].segment(a.key); k.seg != nil {
		k.off, k.found = k.seg.find(a.key)
	}
	if !k.found {
		k.state = u.Limit.full(t.judge.now)
		return k
	}
	state, ref := k.seg.read(k.off)
	if u.ref == 0 {
		u.ref = t.rules.numbers[u.Rule]
	}
	if ref == u.ref {
		k.state = u.Limit.advance(state, t.judge.now)
		k.fresh = uint64(k.state.tokens) >= u.Limit.Capacity()
		return k
	}
	old := &t.rules.rule(ref).Limit
	k.fresh = old.fresh(state, t.judge.now)
	k.state = old.rebase(state, &u.Limit, t.judge.now)
	return k
}

// charge takes what was asked from each bucket; the tallies then hold what is left.
func (t *Table) charge(uses []use, commit bool) {
	resized := false // then the offsets found before no longer count
	for i := range t.judge.tallies {
		k := &t.judge.tallies[i]
		if k.spent == 0 {
			continue
		}
		k.state.tokens -= uint32(k.spent)
		if !commit {
			continue
		}
		ref := t.rules.refer(&uses[k.use])
		sl := &t.slots[k.slot]
		if !k.found {
			sl.insert(k.key, k.state, ref)
			t.buckets++
			resized = true
			continue
		}
		if resized {
			k.seg = sl.segment(k.key)
			k.off, _ = k.seg.find(k.key)
		}
		k.seg.write(k.off, k.key, k.state, ref)
	}
}

// answer appends the answer of each take to out.
func (t *Table) answer(asks []ask, uses []use, out *Results) {
	for i := range asks {
		d := &t.judge.verdicts[i]
		k := &t.judge.tallies[d.tally]
		limit := &uses[k.use].Limit
		rule := &uses[asks[i].use].Rule
		capacity := rule.Limit.Capacity()
		out.Answers = append(out.Answers, Answer{
			Rule: *rule, Allowed: d.reason == ReasonNone, Reason: d.reason,
			Capacity: capacity, Remaining: min(uint64(k.state.tokens), capacity),
			ResetAfter: limit.wait(k.state, limit.Capacity(), t.judge.now), RetryAfter: d.retry,
		})
	}
}

// remember keeps the answers of an admitted request under its id.
func (t *Table) remember(j *job, asks []ask, uses []use, answers []Answer) {
	v := &t.judge
	v.stored = v.stored[:0]
	for i := range answers {
		v.stored = append(v.stored, stored{
			rule: t.rules.refer(&uses[asks[i].use]), remaining: uint32(answers[i].Remaining), reset: answers[i].ResetAfter,
		})
	}
	t.ids.keep(j.home, &t.slots[j.home].own, &j.id, v.session, v.stored, t.judge.now)
}

package bucket

import "slices"

// denied is the answers of every copy of what was undone or refunded first.
func (m *model) denied(r *Request, k *modelResult) []Answer {
	answers := slices.Clone(k.answers)
	if k.answers == nil {
		answers = make([]Answer, 0, len(r.Takes))
		for _, t := range r.Takes {
			b := m.bucket(modelKey{t.Slot, t.Key}, t.Rule)
			b = &modelBucket{b.clone(), b.rule}
			if b.rule != t.Rule {
				b.change(t.Rule.Limit, max(m.thaw(b.rule), after(m.now, b.limit.fill())))
			}
			a := Answer{Rule: t.Rule, Capacity: t.Rule.Limit.Capacity(), Shadow: t.Shadow}
			b.fill(&a)
			answers = append(answers, a)
		}
	}
	for i := range answers {
		a := &answers[i]
		a.Allowed, a.Reason, a.RetryAfter, a.Delay, a.PermitID, a.FencingToken = false, k.denied, 0, 0, 0, 0
		a.Units, a.UnitCost = 0, 0
	}
	return answers
}

// mark keeps in mind that an id is refused.
func (m *model) mark(r *Request) Code {
	if r.ID.Kind != NoID {
		why := ReasonRefunded
		if r.Op == OpUndo {
			why = ReasonDeniedElsewhere
		}
		m.keep(r, &modelResult{given: true, denied: why})
	}
	return NothingToRefund
}

func (m *model) giveBack(r *Request, k *modelResult) (Code, []Answer) {
	given := k.given
	if k.given = true; r.Op == OpUndo {
		k.denied = ReasonDeniedElsewhere
	}
	if given {
		return NothingToRefund, nil
	}
	if r.Op == OpRefund && slices.ContainsFunc(k.answers, func(a Answer) bool { return a.Units > 0 }) {
		k.denied = ReasonRefunded
	}
	answers := make([]Answer, len(k.answers))
	for i := range k.answers {
		t, at := k.takes[i], modelKey{k.takes[i].Slot, k.takes[i].Key}
		rule := t.Rule
		if all := m.policies[rule.Policy]; len(all) > 0 {
			rule = all[len(all)-1].Rule
		}
		b := m.bucket(at, rule)
		cost := k.charged[i]
		if k.answers[i].Units > 0 {
			cost = m.unspent(r, k, i, rule)
		} else if r.Op == OpRefund && r.Amount > 0 {
			cost = min(cost, r.Amount)
		}
		if b.giveBack(cost, k.at, k.answers[i].FencingToken); m.buckets[at] == nil {
			b = m.bucket(at, rule)
		}
		answers[i] = Answer{Rule: rule, Allowed: true, Capacity: rule.Limit.Capacity(), Shadow: t.Shadow}
		b.fill(&answers[i])
	}
	if r.Op == OpUndo {
		k.answers = slices.Clone(k.answers)
		for i := range k.answers {
			k.answers[i].Remaining, k.answers[i].ResetAfter = answers[i].Remaining, answers[i].ResetAfter
		}
	}
	return Refunded, answers
}

func (m *model) permit(r *Request) (Code, []Answer) {
	t := r.Takes[0]
	if r.Op == OpRenew {
		if m.stale(r.Takes) {
			return PolicyStale, nil
		}
		m.cut(t.Rule)
	}
	b := m.bucket(modelKey{t.Slot, t.Key}, t.Rule)
	i := -1
	if b.limit.Algorithm == Concurrency {
		i = slices.IndexFunc(b.entries, func(e oracleEntry) bool { return e.token != 0 && permitID(t.Slot, e.token) == r.Permit && e.cost > 0 })
	}
	if i < 0 {
		return NoSuchPermit, nil
	}
	a, code := Answer{Rule: b.rule, Allowed: true, Capacity: b.limit.Capacity()}, Refunded
	if r.Op == OpRelease {
		b.entries = slices.Delete(b.entries, i, i+1)
	} else {
		b.entries[i].time = m.now + b.limit.Window
		a.PermitID, a.FencingToken, code = r.Permit, b.entries[i].token, Admitted
	}
	b.fill(&a)
	return code, []Answer{a}
}

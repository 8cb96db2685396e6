package bucket

import (
	"math/big"
	"slices"
)

// lease is a take of as many units as the model finds.
func (m *model) lease(r *Request, got []Answer) (Code, []Answer) {
	if !slices.ContainsFunc(r.Takes, func(t Take) bool { return !t.Shadow }) ||
		slices.ContainsFunc(r.Takes, func(t Take) bool { return t.Cost == 0 || !t.Rule.Limit.Algorithm.Leasable() }) {
		return NotLeasable, nil
	}
	if m.stale(r.Takes) {
		return PolicyStale, nil
	}
	n := m.units(r)
	whole := *r
	whole.Takes = slices.Clone(r.Takes)
	for i := range whole.Takes {
		whole.Takes[i].Cost = min(min(whole.Takes[i].Cost, MaxAmount+1)*n, MaxAmount+1)
	}
	code, answers := m.judge(&whole, got)
	for i := range answers {
		if code == Admitted && answers[i].Allowed {
			answers[i].Units, answers[i].UnitCost = n, r.Takes[i].Cost
		}
	}
	return code, answers
}

// units is how many a lease may take: of each bucket a share of what it holds, at
// least one, and one also where not even that passes.
func (m *model) units(r *Request) uint64 {
	spent := map[modelKey]uint64{}
	firm := map[modelKey]bool{}
	n := max(r.Amount, 1)
	for _, t := range r.Takes {
		m.cut(t.Rule)
	}
	held := func(t Take) *modelBucket {
		b := m.bucket(modelKey{t.Slot, t.Key}, t.Rule)
		return &modelBucket{b.clone(), t.Rule}
	}
	for _, t := range r.Takes {
		k := modelKey{t.Slot, t.Key}
		cost := min(t.Cost, MaxAmount+1)
		reason, _ := held(t).weigh(spent[k] + cost)
		if reason != ReasonNone && !t.Shadow {
			return 1
		}
		if reason == ReasonNone {
			spent[k] += cost
			firm[k] = firm[k] || !t.Shadow
		}
	}
	for _, t := range r.Takes {
		if k := (modelKey{t.Slot, t.Key}); firm[k] {
			n = min(n, held(t).remaining()/max(r.Share, 1)/spent[k])
		}
	}
	return max(n, 1)
}

// unspent is what a return of a lease gives back to bucket i, whose rule is now rule.
func (m *model) unspent(r *Request, k *modelResult, i int, rule Rule) uint64 {
	a := k.answers[i]
	n := a.Units
	if r.Amount > 0 {
		n = min(n, r.Amount)
	}
	if k.takes[i].Rule != rule {
		return 0
	}
	cost := min(n*a.UnitCost, k.charged[i])
	if rule.Limit.Algorithm != TokenBucket {
		return cost
	}
	gain := gained(rule.Limit, m.now-k.at)
	up := new(big.Int).Add(floor(gain), big.NewInt(0))
	if !gain.IsInt() {
		up.Add(up, big.NewInt(1))
	}
	if !up.IsUint64() {
		return 0
	}
	return less(cost, up.Uint64())
}

package bucket

import (
	"math"

	"pgregory.net/rapid"
)

// world is the small world that random logs happen in: few slots, keys, rules
// and ids, so that they meet.
type world struct {
	slots   int
	rules   [2][]Rule // versions of each policy
	newest  [2]int    // the version that takes name by now
	permits []Request // releases of what was granted
}

func worlds(t *rapid.T) *world {
	w := &world{slots: rapid.SampledFrom([]int{3, 16}).Draw(t, "slots")}
	for p := range w.rules {
		l := anyLimits().Draw(t, "limit")
		for v := range rapid.IntRange(1, 4).Draw(t, "versions") {
			if v > 0 {
				was := l
				if l = anyLimits().Draw(t, "limit"); rapid.Bool().Draw(t, "same algorithm") {
					l.Algorithm = was.Algorithm
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "nothing") == 0 {
				l.Amount = 0
			}
			if !l.Algorithm.HasBurst() {
				l.Burst = l.Amount
			}
			w.rules[p] = append(w.rules[p], Rule{Policy: uint64(p), Version: uint64(10 * (v + 1)), Limit: l})
		}
	}
	return w
}

func (w *world) slot(t *rapid.T) uint16 {
	return uint16(rapid.IntRange(0, w.slots-1).Draw(t, "slot")) % 5
}

// rule draws the rule of a take: the newest of its policy, now and then a newer
// one, or one that tb knows to be stale.
func (w *world) rule(t *rapid.T, tb *Table, policy int) Rule {
	all, at := w.rules[policy], &w.newest[policy]
	switch rapid.IntRange(0, 11).Draw(t, "version") {
	case 0:
		*at = min(*at+1, len(all)-1)
	case 1:
		if n := tb.rules.newest[uint64(policy)]; *at > 0 && n != 0 && tb.rules.list[n-1].Rule == all[*at] {
			return all[*at-1]
		}
	}
	return all[*at]
}

// request draws any request for tb. Slot 2 is not held for a while.
func (w *world) request(t *rapid.T, tb *Table) Request {
	if len(w.permits) > 0 && rapid.IntRange(0, 5).Draw(t, "permit") == 0 {
		r := rapid.SampledFrom(w.permits).Draw(t, "which")
		r.Op = rapid.SampledFrom([]Op{OpRelease, OpRenew}).Draw(t, "op")
		r.Takes = []Take{r.Takes[0]}
		r.Takes[0].Rule = w.rule(t, tb, int(r.Takes[0].Rule.Policy))
		return r
	}
	r := Request{Home: w.slot(t), NoNewBucket: rapid.IntRange(0, 9).Draw(t, "cap") == 0}
	r.ID = w.id(t)
	if r.ID.Kind != NoID && rapid.IntRange(0, 4).Draw(t, "give back") == 0 {
		r.Op = OpUndo
		if r.ID.Kind == OwnID && rapid.Bool().Draw(t, "refund") {
			r.Op = OpRefund
			r.Amount = rapid.SampledFrom([]uint64{0, 0, 1, 5, MaxAmount}).Draw(t, "amount")
		}
		return r
	}
	if rapid.IntRange(0, 3).Draw(t, "lease") == 0 {
		r.Op = OpLease
		r.Amount = rapid.SampledFrom([]uint64{0, 1, 2, 10, MaxAmount, math.MaxUint64}).Draw(t, "units")
		r.Share = rapid.SampledFrom([]uint64{0, 1, 2, 5, math.MaxUint64}).Draw(t, "share")
	}
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3, 6}).Draw(t, "takes") {
		policy := rapid.IntRange(0, 1).Draw(t, "policy")
		rule := w.rule(t, tb, policy)
		k := Take{Slot: r.Home, Key: spread(uint64(policy) + 2*rapid.Uint64Range(0, 1).Draw(t, "key")), Rule: rule, Cost: costs(rule.Limit).Draw(t, "cost")}
		if rapid.IntRange(0, 3).Draw(t, "away") == 0 {
			k.Slot = w.slot(t)
		}
		k.Shadow = rapid.IntRange(0, 4).Draw(t, "shadow") == 0
		r.Takes = append(r.Takes, k)
	}
	return r
}

// granted notes the permits of out, to be released and renewed.
func (w *world) granted(reqs []Request, out *Results) {
	for i, item := range out.Items {
		for k, a := range out.Answers[item.First : item.First+item.Count] {
			if a.PermitID != 0 && k < len(reqs[i].Takes) {
				t := reqs[i].Takes[k]
				w.permits = append(w.permits, Request{Home: t.Slot, Permit: a.PermitID, Takes: []Take{t}})
			}
		}
	}
}

func (w *world) id(t *rapid.T) ID {
	id := ID{Kind: rapid.SampledFrom([]IDKind{NoID, ClientID, ClientID, OwnID}).Draw(t, "kind")}
	if id.Kind == NoID {
		return id
	}
	id.Content = rapid.SampledFrom([]uint64{7, 7, 7, 8}).Draw(t, "content")
	id.AgeNanos = rapid.SampledFrom([]uint64{0, 0, 5, Horizon, Horizon + 1}).Draw(t, "age")
	if id.Kind == OwnID {
		id.Own = spread(rapid.Uint64Range(0, 3).Draw(t, "own"))
		return id
	}
	id.Session = rapid.Uint64Range(1, 2).Draw(t, "session")
	id.Sequence = rapid.Uint64Range(0, 12).Draw(t, "sequence")
	id.Acked = rapid.SampledFrom([]uint64{0, 0, 0, 1, 3, 6}).Draw(t, "acked")
	return id
}

// stamp draws the next stamp: small steps, those of a rule, and those of the horizon.
func (w *world) stamp(t *rapid.T, now int64) int64 {
	policy := rapid.IntRange(0, 1).Draw(t, "pace")
	rule := w.rules[policy][w.newest[policy]]
	step := rapid.OneOf(steps(rule.Limit), rapid.Int64Range(0, sec),
		rapid.SampledFrom([]int64{Horizon / 3, Horizon, Horizon + 1, 2*Horizon + 1}))
	return min(later(now, step.Draw(t, "step")), 1<<60)
}

// entry draws any entry.
func (w *world) entry(t *rapid.T, g *rig, now int64) (e []byte, reqs []Request) {
	stamp := w.stamp(t, now)
	switch rapid.IntRange(0, 12).Draw(t, "entry") {
	case 0:
		return StampEntry(stamp, rapid.SampledFrom([]int{0, 5, 1000, 1 << 20}).Draw(t, "sweep")), nil
	case 1:
		return HoldEntry(stamp, []uint16{2}), nil
	case 2:
		policy := rapid.IntRange(0, 1).Draw(t, "policy")
		w.newest[policy] = min(w.newest[policy]+1, len(w.rules[policy])-1)
		return CutoverEntry(stamp, []Rule{w.rules[policy][w.newest[policy]]}), nil
	}
	for range rapid.IntRange(0, 5).Draw(t, "requests") {
		reqs = append(reqs, w.request(t, g.table))
	}
	return g.encode(stamp, reqs...), reqs
}

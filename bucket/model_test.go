package bucket

import (
	"math"
	"slices"
)

// model is the whole table in maps, lists and rational numbers. It never sweeps:
// what has expired is told by its time alone, and a bucket goes through each
// version of its policy as that begins.
type model struct {
	now      int64
	held     map[uint16]bool
	policies map[uint64][]modelVersion
	buckets  map[modelKey]*modelBucket
	sessions map[modelSession]*modelResults
	own      map[uint16]*modelResults
	grants   map[uint16]uint64
}

type modelKey struct {
	slot uint16
	key  Key
}

type modelVersion struct {
	Rule
	began, thaw int64
}

// modelBucket is a bucket under version at of its policy.
type modelBucket struct {
	*oracle
	rule Rule
}

type modelSession struct {
	slot    uint16
	session uint64
}

// modelResults are the results of a session, or of one slot's own ids.
type modelResults struct {
	watermark uint64
	last      int64
	list      []*modelResult
}

// modelResult is what became of an id. charged has one cost per take.
type modelResult struct {
	id      ID
	at      int64
	answers []Answer
	takes   []Take
	charged []uint64
	given   bool
	denied  Reason // of every copy
}

func newModel() *model {
	return &model{
		held: map[uint16]bool{}, policies: map[uint64][]modelVersion{}, buckets: map[modelKey]*modelBucket{},
		sessions: map[modelSession]*modelResults{}, own: map[uint16]*modelResults{}, grants: map[uint16]uint64{},
	}
}

// bucket is the bucket of a key under the newest version of its rule's policy, or
// a fresh one under the rule itself.
func (m *model) bucket(k modelKey, rule Rule) *modelBucket {
	b := m.buckets[k]
	if b == nil {
		return &modelBucket{newOracleOf(rule.Limit, k.key, m.now), rule}
	}
	for _, v := range m.policies[b.rule.Policy] {
		if v.Version > b.rule.Version {
			b.advance(v.began)
			b.change(v.Limit, v.thaw)
			b.rule = v.Rule
		}
	}
	b.advance(m.now)
	return b
}

// cut lets rule begin now if it is newer than what is known.
func (m *model) cut(rule Rule) {
	all := m.policies[rule.Policy]
	if len(all) == 0 || all[len(all)-1].Version >= rule.Version {
		return
	}
	last := all[len(all)-1]
	thaw := max(last.thaw, after(m.now, last.Limit.fill()))
	m.policies[rule.Policy] = append(all, modelVersion{rule, m.now, thaw})
}

// thaw is when buckets under rule count as recovered; see version.thaw.
func (m *model) thaw(rule Rule) int64 {
	for _, v := range m.policies[rule.Policy] {
		if v.Rule == rule {
			return v.thaw
		}
	}
	return math.MinInt64
}

// learn makes a policy known: a bucket or a result names it.
func (m *model) learn(rule Rule) {
	if m.policies[rule.Policy] == nil {
		m.policies[rule.Policy] = []modelVersion{{rule, m.now, math.MinInt64}}
	}
}

// unclear says whether two takes on one bucket name different rules.
func unclear(takes []Take) bool {
	return slices.ContainsFunc(takes, func(a Take) bool {
		return slices.ContainsFunc(takes, func(b Take) bool { return a.Key == b.Key && a.Slot == b.Slot && a.Rule != b.Rule })
	})
}

// stale says whether takes name a version that is older than another.
func (m *model) stale(takes []Take) bool {
	for _, a := range takes {
		if all := m.policies[a.Rule.Policy]; len(all) > 0 && all[len(all)-1].Version > a.Rule.Version {
			return true
		}
		for _, b := range takes {
			if a.Rule.Policy == b.Rule.Policy && a.Rule.Version != b.Rule.Version {
				return true
			}
		}
	}
	return unclear(takes)
}

// results are those kept for r's id, cleaned of what has expired.
func (m *model) results(r *Request) *modelResults {
	if r.ID.Kind == OwnID {
		o := m.own[r.Home]
		if o == nil {
			o = &modelResults{}
			m.own[r.Home] = o
		}
		o.list = slices.DeleteFunc(o.list, func(k *modelResult) bool { return m.now-k.at > Horizon })
		return o
	}
	k := modelSession{r.Home, r.ID.Session}
	s := m.sessions[k]
	if s == nil || m.now-s.last > 2*Horizon {
		return nil
	}
	for len(s.list) > 0 && m.now-s.list[0].at > Horizon {
		s.watermark = max(s.watermark, s.list[0].id.Sequence)
		s.list = s.list[1:]
	}
	return s
}

// apply judges r at m.now and returns its result, First apart, and its answers.
// got are the answers of the table, from which it takes the names of permits.
func (m *model) apply(r *Request, got []Answer) (Result, []Answer) {
	res := Result{Code: NotHeld, SlotTime: m.now}
	if !m.held[r.Home] || slices.ContainsFunc(r.Takes, func(t Take) bool { return !m.held[t.Slot] }) {
		return res, nil
	}
	var answers []Answer
	if r.Op == OpRelease || r.Op == OpRenew {
		res.Code, answers = m.permit(r)
	} else if res.Code, answers = m.known(r, &res); res.Code == Denied && answers == nil {
		switch r.Op {
		case OpTake:
			res.Code, answers = m.judge(r, got)
		case OpLease:
			res.Code, answers = m.lease(r, got)
		default:
			res.Code = m.mark(r)
		}
	}
	res.Count = int32(len(answers))
	return res, answers
}

// known answers a request whose id is known or too old; else Denied and nothing.
func (m *model) known(r *Request, res *Result) (Code, []Answer) {
	kept := m.results(r)
	if r.ID.Kind == ClientID && kept != nil {
		kept.watermark = max(kept.watermark, r.ID.Acked)
	}
	if r.ID.Kind == NoID {
		return Denied, nil
	}
	if r.ID.AgeNanos > Horizon || r.ID.Kind == ClientID && (r.ID.Sequence <= r.ID.Acked || kept != nil && r.ID.Sequence <= kept.watermark) {
		return TooOld, nil
	}
	if kept == nil {
		return Denied, nil
	}
	for _, k := range kept.list {
		if k.id.Kind != r.ID.Kind || k.id.Sequence != r.ID.Sequence || k.id.Own != r.ID.Own {
			continue
		}
		switch {
		case r.Op != OpTake && r.Op != OpLease:
			return m.giveBack(r, k)
		case k.id.Content != r.ID.Content && k.answers != nil:
			return IDReused, nil
		}
		res.SlotTime, res.Age = k.at, max(0, m.now-k.at)
		if k.denied == ReasonNone {
			return Repeated, k.answers
		}
		if k.answers == nil && unclear(r.Takes) {
			return PolicyStale, nil
		}
		return Denied, m.denied(r, k)
	}
	return Denied, nil
}

// judge weighs all takes on copies of the buckets, then charges them all or none.
func (m *model) judge(r *Request, got []Answer) (Code, []Answer) {
	if m.stale(r.Takes) {
		return PolicyStale, nil
	}
	code, copies, firm := Admitted, map[modelKey]*modelBucket{}, map[modelKey]bool{}
	spent, isNew := map[modelKey]uint64{}, map[modelKey]bool{}
	answers, charged := make([]Answer, len(r.Takes)), make([]uint64, len(r.Takes))
	for _, t := range r.Takes {
		m.cut(t.Rule)
	}
	for i, t := range r.Takes {
		k := modelKey{t.Slot, t.Key}
		if copies[k] == nil {
			b := m.bucket(k, t.Rule)
			copies[k], isNew[k] = &modelBucket{b.clone(), t.Rule}, b.full()
		}
		a := Answer{Rule: t.Rule, Shadow: t.Shadow}
		cost := min(t.Cost, MaxAmount+1)
		a.Reason, a.RetryAfter = copies[k].weigh(spent[k] + max(cost, 1))
		if a.Allowed = a.Reason == ReasonNone; a.Allowed || !t.Shadow {
			spent[k] += cost
			firm[k] = firm[k] || !t.Shadow && cost > 0
		}
		if !a.Allowed && !t.Shadow {
			code = Denied
		}
		answers[i] = a
	}
	total := uint64(0)
	for k := range spent {
		if r.NoNewBucket && isNew[k] && spent[k] > 0 {
			if code == Admitted && firm[k] {
				return StoreFull, nil
			}
			spent[k] = 0
		}
		total += spent[k]
	}
	for i, t := range r.Takes {
		k := modelKey{t.Slot, t.Key}
		if a := &answers[i]; code == Admitted && a.Allowed && (spent[k] > 0 || t.Cost == 0) {
			if t.Cost > 0 && t.Rule.Limit.Algorithm == Concurrency && len(got) > i && got[i].FencingToken > m.grants[t.Slot] {
				m.grants[t.Slot] = got[i].FencingToken
				a.FencingToken, a.PermitID = got[i].FencingToken, permitID(t.Slot, got[i].FencingToken)
			}
			if t.Cost > 0 || t.Rule.Limit.Algorithm == LeakyBucket {
				a.Delay = copies[k].spend(t.Cost, a.FencingToken)
			}
			charged[i] = t.Cost
			if spent[k] > 0 {
				m.buckets[k] = copies[k]
				m.learn(t.Rule)
			}
		}
	}
	for i, t := range r.Takes {
		answers[i].Capacity = t.Rule.Limit.Capacity()
		copies[modelKey{t.Slot, t.Key}].fill(&answers[i])
	}
	if code == Admitted && total > 0 && r.ID.Kind != NoID {
		for _, t := range r.Takes {
			m.learn(t.Rule)
		}
		m.keep(r, &modelResult{answers: answers, takes: r.Takes, charged: charged})
	}
	return code, answers
}

func (m *model) keep(r *Request, stored *modelResult) {
	stored.id, stored.at = r.ID, m.now
	if r.ID.Kind == OwnID {
		m.own[r.Home].list = append(m.own[r.Home].list, stored)
		return
	}
	s := m.results(r)
	if s == nil {
		s = &modelResults{watermark: r.ID.Acked}
		m.sessions[modelSession{r.Home, r.ID.Session}] = s
	}
	s.list, s.last = append(s.list, stored), m.now
}

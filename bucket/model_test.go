package bucket

import (
	"slices"
)

// model is the whole table in maps and rational numbers. It never sweeps: what
// has expired is told by its time alone.
type model struct {
	now      int64
	slots    int
	held     map[uint16]bool
	buckets  map[modelKey]*oracle
	rules    map[modelKey]Rule
	sessions map[modelSession]*modelResults
	own      map[uint16]*modelResults
}

type modelKey struct {
	slot uint16
	key  Key
}

type modelSession struct {
	slot    uint16
	session uint64
}

// modelResults are the results of a session, or of one slot's own ids.
type modelResults struct {
	watermark uint64
	last      int64
	list      []modelResult
}

type modelResult struct {
	id      ID
	at      int64
	answers []Answer
}

func newModel(slots int) *model {
	return &model{
		slots: slots, held: map[uint16]bool{}, buckets: map[modelKey]*oracle{}, rules: map[modelKey]Rule{},
		sessions: map[modelSession]*modelResults{}, own: map[uint16]*modelResults{},
	}
}

// results are those kept for r's id, cleaned of what has expired.
func (m *model) results(r *Request) *modelResults {
	if r.ID.Kind == OwnID {
		o := m.own[r.Home]
		if o == nil {
			o = &modelResults{}
			m.own[r.Home] = o
		}
		o.list = slices.DeleteFunc(o.list, func(k modelResult) bool { return m.now-k.at > Horizon })
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
func (m *model) apply(r *Request) (Result, []Answer) {
	res := Result{Code: NotHeld, SlotTime: m.now}
	if !m.held[r.Home] || slices.ContainsFunc(r.Takes, func(t Take) bool { return !m.held[t.Slot] }) {
		return res, nil
	}
	kept := m.results(r)
	if r.ID.Kind == ClientID && kept != nil {
		kept.watermark = max(kept.watermark, r.ID.Acked)
	}
	if r.ID.Kind != NoID {
		if r.ID.AgeNanos > Horizon || r.ID.Kind == ClientID && (r.ID.Sequence <= r.ID.Acked || kept != nil && r.ID.Sequence <= kept.watermark) {
			res.Code = TooOld
			return res, nil
		}
	}
	if kept != nil {
		for _, k := range kept.list {
			if k.id.Kind == r.ID.Kind && k.id.Sequence == r.ID.Sequence && k.id.Own == r.ID.Own {
				if k.id.Content != r.ID.Content {
					res.Code = IDReused
					return res, nil
				}
				res.Code, res.SlotTime, res.Count = Repeated, k.at, int32(len(k.answers))
				return res, k.answers
			}
		}
	}
	answers := m.judge(r, &res)
	res.Count = int32(len(answers))
	return res, answers
}

// judge weighs all takes on copies of the buckets, then charges them all or none.
func (m *model) judge(r *Request, res *Result) []Answer {
	copies, spent, order := map[modelKey]*oracle{}, map[modelKey]uint64{}, []modelKey(nil)
	isNew := map[modelKey]bool{}
	last := map[modelKey]Rule{}
	answers := make([]Answer, len(r.Takes))
	res.Code = Admitted
	for i, t := range r.Takes {
		k := modelKey{t.Slot, t.Key}
		o := copies[k]
		if o == nil {
			if b := m.buckets[k]; b != nil {
				o = &oracle{limit: b.limit, level: rat(0).Set(b.level), at: b.at}
				o.advance(m.now)
			} else {
				o = newOracle(t.Rule.Limit, m.now)
			}
			isNew[k] = o.full()
			copies[k], order = o, append(order, k)
		}
		if o.limit != t.Rule.Limit {
			o.change(t.Rule.Limit)
		}
		last[k] = t.Rule
		spent[k] += min(t.Cost, MaxAmount+1)
		need := spent[k]
		if t.Cost == 0 {
			need++
		}
		a := Answer{Rule: t.Rule}
		a.Reason, a.RetryAfter = o.weigh(need)
		if a.Allowed = a.Reason == ReasonNone; !a.Allowed {
			res.Code = Denied
		}
		answers[i] = a
	}
	total := uint64(0)
	for _, k := range order {
		total += spent[k]
		if res.Code == Admitted && r.NoNewBucket && isNew[k] && spent[k] > 0 {
			res.Code = StoreFull
			return nil
		}
	}
	for _, k := range order {
		if res.Code == Admitted {
			copies[k].level.Sub(copies[k].level, rat(spent[k]))
			if spent[k] > 0 {
				m.buckets[k] = copies[k]
			}
		}
	}
	for i, t := range r.Takes {
		o := copies[modelKey{t.Slot, t.Key}]
		answers[i].Capacity = t.Rule.Limit.Capacity()
		o.fill(&answers[i])
		answers[i].Remaining = min(answers[i].Remaining, answers[i].Capacity)
	}
	if res.Code == Admitted && total > 0 {
		m.keep(r, answers)
	}
	return answers
}

func (m *model) keep(r *Request, answers []Answer) {
	stored := modelResult{id: r.ID, at: m.now, answers: answers}
	switch r.ID.Kind {
	case OwnID:
		m.own[r.Home].list = append(m.own[r.Home].list, stored)
	case ClientID:
		s := m.results(r)
		if s == nil {
			s = &modelResults{watermark: r.ID.Acked}
			m.sessions[modelSession{r.Home, r.ID.Session}] = s
		}
		s.list, s.last = append(s.list, stored), m.now
	}
}

package check

import (
	"math/big"

	"github.com/ringlimit/ringlimit/bucket"
)

// What a replayed bucket begins with: at the beginning of a life, and of a version of
// its limit.

// begin begins a life with its first answer. After a certain loss slot time is that
// since the birth of the slot, at which all was used, or at any time the bucket is
// full; where slots are salvaged, or nobody knows of the loss, a bucket that counts
// as used is at least not fuller than had it not been lost.
func (r *replay) begin(l Limit, o *Op) {
	now, x, loss := int64(o.Witness.SlotTime), r.begins, r.s.OnLoss[r.name]
	old, goesOn := r.model.(*flow)
	goesOn = goesOn && r.last != nil && l == r.limit
	r.begins, r.limit, r.absent = nil, l, x.begins == beginsLost
	switch certain := x.begins == beginsLost && len(r.s.Changed[r.name]) == 0; {
	case x.begins == beginsFresh, certain && loss == bucket.LossFull:
		r.model = newModel(l, now)
	case certain && loss == bucket.LossEmpty && l.Algorithm.HasBurst() && !r.s.salvages():
		f := newFlow(l, 0)
		f.level = exactly(new(big.Int))
		r.model = f
	case certain && loss == bucket.LossEmpty && l.Algorithm == bucket.SlidingLog && !r.s.salvages():
		r.model = fullLog(l, 0)
	default:
		r.anew(now)
		if f, ok := r.model.(*flow); ok && goesOn && loss == bucket.LossEmpty {
			most := int64(float64(o.Return-r.last.Call)*(1+r.s.drift())) + 1
			f.level.atMost(new(big.Int).Add(old.level.high, times(l.Amount, most)))
		}
	}
}

// change is a new version of the limit. What carries over is exact in the product
// and here only bounded: where the algorithm or the windows change, not even that. An
// absent bucket has nothing to carry over: it was used up at the birth, and what it has
// gained since then is reckoned by the limit of the moment.
func (r *replay) change(l Limit, o *Op) {
	f, flows := r.model.(*flow)
	now := int64(o.Witness.SlotTime)
	same := l.Algorithm == r.limit.Algorithm
	r.limit = l
	switch {
	case same && flows:
		f.become(l, now, r.s.largest(r.name), r.gained(o.Version, now-f.now))
		if gained := times(l.Amount, now); r.absent && gained.Cmp(f.level.high) > 0 {
			f.level.high.Set(gained)
			f.level.clamp(f.least, f.full)
		}
	default:
		r.anew(now)
	}
}

// gained is how many tokens the fastest of the versions that came since the last answer,
// up to v, brings in d ns: some may have come and gone without an answer.
func (r *replay) gained(v uint64, d int64) *big.Int {
	most := new(big.Int)
	for version, l := range r.s.Changed[r.name] {
		if version > v || r.last != nil && version <= r.last.Version {
			continue
		}
		if n := ceil(times(l.Amount, max(d, 0)), big.NewInt(l.Window)); n.Cmp(most) > 0 {
			most = n
		}
	}
	return most
}

// anew begins with a bucket of which nothing is known but its limit.
func (r *replay) anew(now int64) {
	if r.model = newModel(r.limit, now); r.model == nil || r.model.exact() {
		r.unclear = true
		return
	}
	r.model.widen(capacity(r.limit), 0)
	switch m := r.model.(type) {
	case *fixed:
		m.edges.odd = true
		m.most = whole(max(r.s.largest(r.name), r.limit.Amount))
		m.count.high.Set(m.most)
	case *flow:
		if r.limit.Algorithm == bucket.LeakyBucket {
			m.owe(r.s.largest(r.name))
		}
	}
}

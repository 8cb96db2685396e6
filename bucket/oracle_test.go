package bucket

import (
	"math"
	"math/big"
)

// oracle is a token bucket in rational numbers.
type oracle struct {
	limit Limit
	level *big.Rat
	at    int64
}

func newOracle(l Limit, now int64) *oracle {
	return &oracle{limit: l, level: rat(l.Capacity()), at: now}
}

func rat(n uint64) *big.Rat { return new(big.Rat).SetInt(new(big.Int).SetUint64(n)) }

// gained is what ns of time give: rate × time.
func gained(l Limit, ns int64) *big.Rat {
	n := new(big.Int).Mul(new(big.Int).SetUint64(l.Amount), big.NewInt(ns))
	return new(big.Rat).SetFrac(n, big.NewInt(l.Window))
}

func (o *oracle) advance(now int64) {
	if now <= o.at {
		return
	}
	o.level.Add(o.level, gained(o.limit, now-o.at)) // times here are ≥ 0
	if c := rat(o.limit.Capacity()); o.level.Cmp(c) > 0 {
		o.level.Set(c)
	}
	o.at = now
}

func (o *oracle) full() bool { return o.level.Cmp(rat(o.limit.Capacity())) >= 0 }

// change carries the bucket over to another limit at o.at.
func (o *oracle) change(l Limit) {
	if o.full() || o.level.Cmp(rat(l.Capacity())) >= 0 {
		*o = *newOracle(l, o.at)
		return
	}
	whole := new(big.Int).Quo(o.level.Num(), o.level.Denom())
	frac := new(big.Rat).Sub(o.level, new(big.Rat).SetInt(whole))
	frac.Mul(frac, new(big.Rat).SetInt64(l.Window))
	frac.SetFrac(new(big.Int).Quo(frac.Num(), frac.Denom()), big.NewInt(l.Window))
	o.level = frac.Add(frac, new(big.Rat).SetInt(whole))
	o.limit = l
}

func (o *oracle) remaining() uint64 {
	return new(big.Int).Quo(o.level.Num(), o.level.Denom()).Uint64()
}

// wait is the least ns after which the level is at least need.
func (o *oracle) wait(need uint64) int64 {
	missing := new(big.Rat).Sub(rat(need), o.level)
	if missing.Sign() <= 0 {
		return 0
	}
	missing.Quo(missing, gained(o.limit, 1))
	ns, rest := new(big.Int).QuoRem(missing.Num(), missing.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		ns.Add(ns, big.NewInt(1))
	}
	if !ns.IsInt64() {
		return math.MaxInt64
	}
	return ns.Int64()
}

// weigh says how need tokens would be judged.
func (o *oracle) weigh(need uint64) (Reason, int64) {
	switch {
	case o.limit.Amount == 0:
		return ReasonNothingAllowed, -1
	case need > o.limit.Capacity():
		return ReasonCostExceedsCapacity, -1
	case o.level.Cmp(rat(need)) < 0:
		return ReasonRateLimited, o.wait(need)
	}
	return ReasonNone, 0
}

// take judges and charges one take of cost at now, as Apply would alone.
func (o *oracle) take(rule Rule, now int64, cost uint64) Answer {
	o.advance(now)
	need := max(cost, 1)
	a := Answer{Rule: rule, Capacity: o.limit.Capacity()}
	a.Reason, a.RetryAfter = o.weigh(need)
	a.Allowed = a.Reason == ReasonNone
	if a.Allowed {
		o.level.Sub(o.level, rat(cost))
	}
	o.fill(&a)
	return a
}

func (o *oracle) fill(a *Answer) {
	a.Remaining = o.remaining()
	if o.limit.Amount > 0 {
		a.ResetAfter = o.wait(o.limit.Capacity())
	}
}

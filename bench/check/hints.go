package check

import "github.com/ringlimit/ringlimit/bucket"

// Hints holds that what an answer says about later is true (I10). Remaining is within 0 and
// the capacity; for token and leaky buckets it never rises faster than the rate
// between two answers ordered in real time; and a take that nobody disturbs, retried
// after its retry_after, is admitted.
//
// Replay knows exactly what the numbers have to be; this needs no witness. Buckets
// whose charges may be undone, and all where clocks are set (Setup.Bent), are judged by the range only. Cost: n log n.
func Hints(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	undone := set(s.Spread)
	return each("hints", ops, func(v *Verdict, name string, ops []Op) {
		ranges(v, name, ops)
		l, ok := s.steady(name)
		if !ok || undone[name] || s.Bent {
			return
		}
		if l.Algorithm == bucket.TokenBucket || l.Algorithm == bucket.LeakyBucket {
			rises(s, v, name, l, ops)
		}
		if l.Algorithm != bucket.Concurrency && !s.given(name) {
			retries(s, v, name, ops)
		}
	})
}

func ranges(v *Verdict, name string, ops []Op) {
	for i := range ops {
		o := &ops[i]
		if !o.answered() {
			continue
		}
		v.Checked++
		switch {
		case o.Remaining > o.Capacity:
			v.find(name, ops[i:i+1], "%d of %d are left", o.Remaining, o.Capacity)
		case o.RetryAfter < Never || o.ResetAfter < 0 || o.Delay < 0:
			v.find(name, ops[i:i+1], "a time is below 0")
		case o.Passed && o.RetryAfter != 0:
			v.find(name, ops[i:i+1], "an admission says retry after %v", o.RetryAfter)
		case !o.Passed && o.RetryAfter == 0 && o.takes() && o.Reason == "rate_limited":
			v.find(name, ops[i:i+1], "a denial says retry at once")
		}
	}
}

// rises compares each answer with the one that allows it least: of those that had
// returned before it was called, the least remaining − rate × call.
func rises(s *Setup, v *Verdict, name string, l Limit, ops []Op) {
	rate := perNano(l) * (1 + s.drift())
	back := returned(s, name, ops)
	repeats := copied(ops)
	var tells []Op
	for i := range ops {
		if o := &ops[i]; o.answered() && !o.elsewhere() && (o.takes() || o.Kind == Look) {
			tells = append(tells, *o)
		}
	}
	level := func(o *Op) float64 { return float64(o.Remaining) - rate*float64(o.Call) }
	ended, next := byReturn(tells), 0
	var least *Op
	for _, o := range byCall(tells) {
		for ; next < len(ended) && ended[next].precedes(&o); next++ {
			p := &ended[next]
			if repeats[p.ID] && p.ID != "" || p.Witness.Repeated {
				continue // it tells of an earlier time
			}
			if least == nil || level(p) < level(least) {
				least = p
			}
		}
		if least == nil || repeats[o.ID] && o.ID != "" || o.Witness.Uncommitted { // a deposed leader may tell old news
			continue
		}
		most := float64(least.Remaining) + rate*float64(o.Return-least.Call) + 1
		if float64(o.Remaining) <= most {
			continue
		}
		for _, g := range back {
			if g.overlaps(least.Call, o.Return) {
				most += float64(g.Tokens)
			}
		}
		if float64(o.Remaining) > most {
			v.find(name, []Op{*least, o}, "%d are left after there were %d, at most %.1f can be", o.Remaining, least.Remaining, most)
			return
		}
	}
}

// copied are the ids of which there is more than one copy.
func copied(ops []Op) map[string]bool {
	seen, out := make(map[string]bool), make(map[string]bool)
	for i := range ops {
		if id := ops[i].ID; id != "" {
			out[id] = out[id] || seen[id]
			seen[id] = true
		}
	}
	return out
}

// retries looks at denials whose next operation on the bucket, alone, comes after
// the wait that was named.
func retries(s *Setup, v *Verdict, name string, ops []Op) {
	calls := byCall(ops)
	busy := calls[0].Return // until when an earlier operation may disturb
	for i := 0; i+1 < len(calls); i++ {
		d, r := &calls[i], &calls[i+1]
		alone := i == 0 || busy < d.Call
		busy = max(busy, d.Return)
		if !alone || !d.precedes(r) || d.Outcome != Denied || d.Passed || !d.answered() || d.RetryAfter <= 0 || !d.takes() {
			continue
		}
		if i+2 < len(calls) && calls[i+2].Call <= r.Return || r.Outcome != Denied || r.Passed || !r.answered() || !r.takes() || r.elsewhere() || max(r.Cost, 1) > max(d.Cost, 1) {
			continue
		}
		wait := float64(d.RetryAfter)*(1+s.drift()) + float64(s.lostTime())*float64(s.faultsIn(d.Call, r.Return))
		if float64(r.Call-d.Return) > wait && !s.lost(d, r) {
			v.find(name, []Op{*d, *r}, "a take was denied %v after one that should wait for %v, and nothing came between", r.Call-d.Return, d.RetryAfter)
		}
	}
}

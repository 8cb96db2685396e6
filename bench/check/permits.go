package check

import (
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// Permits judges concurrency limits: never more permits than the limit are held at
// once; a fencing token is larger than every one that had been granted before it was
// asked for, and no two are equal; a permit is not lost before its time, and cannot
// be renewed or released after it.
//
// A permit counts as held from the return of its grant until its release is called,
// or one window after the call of its grant or of its last renewal that had an
// answer: while it certainly is. After a loss of the state all permits count as held
// for one window, so the first two hold on; one that is lost with it is no fault. If
// Setup.OnLoss says otherwise, a permit counts until its group may have lost it. Cost:
// n log n.
func Permits(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	return each("permits", ops, func(v *Verdict, name string, ops []Op) {
		l, ok := s.steady(name)
		if !ok || l.Algorithm != bucket.Concurrency {
			return
		}
		held := permits(ops)
		for i := range held {
			held[i].forgotten(s, name, ops)
		}
		v.Checked = len(held)
		atOnce(s, v, name, l, held)
		tokens(v, name, held)
		for i := range held {
			onTime(s, v, name, l, &held[i])
		}
	})
}

// permit is a grant and what became of it.
type permit struct {
	grant Op            // of copies under one id the first that was answered
	after []Op          // renewals and releases, in order of their calls
	gone  time.Duration // when a loss may have freed it; Forever: none does
}

// forgotten finds out when a permit may have been freed by a loss.
func (p *permit) forgotten(s *Setup, name string, ops []Op) {
	p.gone = Forever
	for _, g := range s.gifts(name, ops) {
		if g.To >= p.grant.Call {
			p.gone = min(p.gone, max(g.From, p.grant.Call))
		}
	}
}

func permits(ops []Op) []permit {
	at := make(map[string]int)
	var out []permit
	for _, o := range byReturn(ops) {
		if !o.takes() || !o.charged() || o.Permit == "" {
			continue
		}
		if i, known := at[o.Permit]; !known || o.ID == "" || o.ID != out[i].grant.ID {
			at[o.Permit] = len(out)
			out = append(out, permit{grant: o})
		}
	}
	first := make(map[string]time.Duration) // call of each id
	for _, o := range byCall(ops) {
		if i, ok := at[o.Permit]; ok && (o.Kind == Renew || o.Kind == Release) {
			out[i].after = append(out[i].after, o)
		}
		if _, ok := first[o.ID]; !ok && o.takes() {
			first[o.ID] = o.Call
		}
	}
	for i := range out {
		if g := &out[i].grant; g.ID != "" {
			g.Call = first[g.ID]
		}
	}
	return out
}

// until is how long a permit is certainly held.
func (p *permit) until(s *Setup, l Limit) time.Duration {
	window := time.Duration(float64(l.Window) * (1 - s.drift()))
	end := min(p.grant.Call+window, p.gone)
	for i := range p.after {
		switch o := &p.after[i]; {
		case o.Outcome == Refused:
		case o.Kind == Release:
			return min(end, o.Call)
		case o.Outcome == Admitted:
			end = min(max(end, o.Call+window), p.gone)
		}
	}
	return end
}

func atOnce(s *Setup, v *Verdict, name string, l Limit, held []permit) {
	type edge struct {
		at    time.Duration
		units int64
		of    int
	}
	var edges []edge
	for i := range held {
		if g := &held[i].grant; held[i].until(s, l) > g.Return {
			edges = append(edges, edge{g.Return, int64(g.Cost), i}, edge{held[i].until(s, l), -int64(g.Cost), i})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return compare(a.at, b.at)
		}
		return compare(a.units, b.units)
	})
	units := int64(0)
	for _, e := range edges {
		if units += e.units; units <= int64(l.Amount) {
			continue
		}
		var ops []Op
		for i := range held {
			if held[i].grant.Return <= e.at && e.at < held[i].until(s, l) {
				ops = append(ops, held[i].grant)
			}
		}
		v.find(name, ends(ops), "%d permits of %d are held at %v", units, l.Amount, e.at)
		return
	}
}

func tokens(v *Verdict, name string, held []permit) {
	grants := make([]Op, len(held))
	seen := make(map[uint64]Op)
	for i := range held {
		o := held[i].grant
		grants[i] = o
		if p, ok := seen[o.Token]; ok {
			v.find(name, []Op{p, o}, "fencing token %d was granted twice", o.Token)
			return
		}
		seen[o.Token] = o
	}
	ended, next := byReturn(grants), 0
	var latest *Op
	for _, o := range byCall(grants) {
		for ; next < len(ended) && ended[next].precedes(&o); next++ {
			if latest == nil || ended[next].Token > latest.Token {
				latest = &ended[next]
			}
		}
		if latest != nil && o.Token <= latest.Token {
			v.find(name, []Op{*latest, o}, "fencing token %d came after %d", o.Token, latest.Token)
			return
		}
	}
}

// onTime judges renewals and releases by when the permit certainly counts, and by
// when it certainly does not any more.
func onTime(s *Setup, v *Verdict, name string, l Limit, p *permit) {
	short := time.Duration(float64(l.Window) * (1 - s.drift()))
	long := time.Duration(float64(l.Window)*(1+s.drift())) + time.Duration(s.faultsIn(p.grant.Call, Forever-1))*s.lostTime()
	sure, last := p.grant.Call+short, p.grant.Return+long
	for i := range p.after {
		o := &p.after[i]
		switch {
		case o.Outcome == Admitted && o.Call > last:
			v.find(name, []Op{p.grant, *o}, "a permit was still held %v after its time", o.Call-last)
			return
		case o.Outcome == Denied && o.Return < sure && !p.released(i) && !s.lost(&p.grant, o):
			v.find(name, []Op{p.grant, *o}, "a permit was lost %v before its time", sure-o.Return)
			return
		}
		switch {
		case o.Outcome == Refused:
		case o.Kind == Release:
		case o.Outcome == Admitted:
			sure, last = max(sure, o.Call+short), max(last, o.Return+long)
		case o.Outcome == Unknown:
			last = Forever // it may come any time
		}
	}
}

// released says whether another operation than the i-th may have released the permit
// before that one was done.
func (p *permit) released(i int) bool {
	for k := range p.after {
		if o := &p.after[k]; k != i && o.Kind == Release && o.Outcome != Refused && o.Call <= p.after[i].Return {
			return true
		}
	}
	return false
}

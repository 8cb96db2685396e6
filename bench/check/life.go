package check

import (
	"slices"
	"time"
)

// beginning is what is known of a bucket at the beginning of a life.
type beginning uint8

const (
	beginsFresh beginning = iota // nothing had ever happened to it
	beginsLost                   // its group had lost it
	beginsOpen                   // perhaps it had, perhaps the life before goes on
)

// life is answers about one bucket between which its state was not lost.
type life struct {
	ops    []Op
	begins beginning
	from   time.Duration // beginsLost: when the loss had not yet been
}

// mayKnow says whether a life may repeat answers of the one before.
func (l *life) mayKnow(s *Setup) bool {
	return l.begins == beginsOpen || l.begins == beginsLost && s.salvages()
}

// stretch is the part of a life in one log.
type stretch struct {
	logName
	ops         []Op
	first, last time.Duration // the first return, the last call; of committed ones if there are any
	committed   bool
}

// lives divides the answers about one bucket, all with a witness, at the losses of its
// state. A slot is taken to enter a new epoch of its group by its loss, not by two
// moves. Within a life the order is that of ops, log by log.
func (s *Setup) lives(ops []Op) (out []life) {
	var last *stretch // of the log that was there last
	parts := stretches(ops)
	for i := range parts {
		p := &parts[i]
		switch begins, from := s.between(last, p); {
		case last == nil, begins != beginsFresh:
			out = append(out, life{ops: slices.Clone(p.ops), begins: begins, from: from})
		default:
			l := &out[len(out)-1]
			l.ops = append(l.ops, p.ops...)
		}
		last = p
	}
	return out
}

// stretches sorts by log, in the order in which the bucket was there.
func stretches(ops []Op) (out []stretch) {
	at := make(map[logName]int)
	for i := range ops {
		o, n := &ops[i], logName{ops[i].Witness.Group, ops[i].Witness.Epoch}
		k, seen := at[n]
		if !seen {
			k = len(out)
			at[n] = k
			out = append(out, stretch{logName: n, first: Forever})
		}
		p := &out[k]
		p.ops = append(p.ops, *o)
		switch committed := !o.Witness.Uncommitted; {
		case committed && !p.committed:
			p.first, p.last, p.committed = o.Return, o.Call, true
		case committed == p.committed:
			p.first, p.last = min(p.first, o.Return), max(p.last, o.Call)
		}
	}
	slices.SortStableFunc(out, func(a, b stretch) int {
		if a.group == b.group {
			return compare(a.epoch, b.epoch)
		}
		return compare(a.first, b.first)
	})
	return out
}

// between is what came between two stretches that follow each other: beginsFresh if
// certainly no loss did. a may be nil: before the history.
func (s *Setup) between(a, b *stretch) (begins beginning, from time.Duration) {
	since := time.Duration(0)
	if a != nil {
		since = min(a.last, b.first)
	}
	for _, l := range s.Losses {
		switch {
		case l.Group == b.group && l.Epoch == b.epoch && (a == nil && s.Still || a != nil && a.group == b.group):
			return beginsLost, l.From
		case s.Still && l.Group != b.group, l.Group == b.group && l.Epoch > b.epoch, a != nil && l.Group == a.group && l.Epoch <= a.epoch:
		case l.overlaps(since, max(since, b.first)):
			begins = beginsOpen
		}
	}
	if a != nil && a.group == b.group && begins == beginsFresh {
		begins = beginsOpen
	}
	return begins, 0
}

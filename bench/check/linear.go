package check

import (
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ringlimit/ringlimit/bucket"
)

// The bounds of what Linear searches through: beyond them the search may not end.
const (
	linearOps     = 300
	linearClients = 8
	linearStarts  = 1001 // levels that a life may begin with
)

// Linear searches an order of the operations on a bucket that refills nothing in
// which every answer is right and no operation moves beyond its call and return:
// black box, by porcupine. It needs no witness and sees what is wrong with single
// answers: stale ones, lost log entries, charges that stand twice. Outcomes that are
// unknown may have happened at any later time, or never. A bucket that is used up
// before the fault shows nothing: give it more tokens than the operations before.
//
// What a bucket had when its state was lost counts as used, or as Setup.OnLoss says;
// each life of it is an order of its own.
//
// Only lives of at most 300 operations by at most 8 clients are judged, and each
// for at most Setup.Search; what is not decided by then is a doubt.
func Linear(s *Setup, ops []Op) Verdict {
	s = s.knowing(ops)
	undone := set(s.Spread)
	search := s.Search
	if search <= 0 {
		search = DefaultSearch
	}
	return each("linear", ops, func(v *Verdict, name string, ops []Op) {
		if l, ok := frozen(s, name, ops); ok && !undone[name] && !refunded(ops) {
			for _, part := range linearParts(s, name, l, ops) {
				part.judge(v, name, capacity(l), search)
			}
		}
	})
}

// linearPart is one life of a bucket.
type linearPart struct {
	ops   []Op
	start []uint64 // what may have been left at its beginning
}

// linearParts divides a history into lives. What is unknown may have happened in any
// of them, and so may what a life repeats that may know of the one before, unless it is
// known where that was decided. Where there are several, an answer without a witness
// belongs to none, and nothing can be said.
func linearParts(s *Setup, name string, l Limit, ops []Op) (parts []linearPart) {
	var placed, open, nowhere []Op
	for i := range ops {
		switch o := &ops[i]; {
		case o.Outcome == Unknown:
			open = append(open, *o)
		case o.answered() && o.Witness.Index > 0:
			placed = append(placed, *o)
		case o.answered():
			nowhere = append(nowhere, *o)
		}
	}
	lives := s.lives(placed)
	if len(lives) == 0 || len(lives) == 1 && lives[0].begins == beginsFresh {
		return []linearPart{{ops, []uint64{capacity(l)}}}
	}
	if len(nowhere) > 0 {
		return nil
	}
	ids := idsOf(ops)
	for i := range lives {
		if lives[i].mayKnow(s) {
			lives[i].ops = slices.DeleteFunc(lives[i].ops, func(o Op) bool {
				if o.Witness.Repeated && o.charged() && !ids[o.ID].decided {
					open = append(open, o.untold())
				}
				return o.Witness.Repeated
			})
		}
	}
	for i := range lives {
		parts = append(parts, linearPart{append(lives[i].ops, open...), startsOf(s, name, l, &lives[i])})
	}
	return parts
}

// untold is o as if its outcome were not known: charged at any time, or never.
func (o Op) untold() Op {
	o.Outcome, o.Return = Unknown, Forever
	return o
}

// startsOf are the levels that a life may begin with.
func startsOf(s *Setup, name string, l Limit, x *life) []uint64 {
	loss := s.OnLoss[name]
	switch {
	case x.begins == beginsFresh, x.begins == beginsLost && loss == bucket.LossFull:
		return []uint64{capacity(l)}
	case x.begins == beginsLost && loss == bucket.LossEmpty:
		return []uint64{0}
	}
	var all []uint64
	for n := range capacity(l) + 1 {
		all = append(all, n)
	}
	return all
}

func (p *linearPart) judge(v *Verdict, name string, tokens uint64, search time.Duration) {
	history := linearHistory(p.ops)
	if len(history) == 0 || len(history) > linearOps || clients(p.ops) > linearClients || len(p.start) > linearStarts {
		return
	}
	v.Checked += len(history)
	switch result, _ := porcupine.CheckOperationsVerbose(linearModel(p.start, p.ops), history, search); result {
	case porcupine.Illegal:
		v.find(name, shortest(p.start, p.ops, search), "no order of its %d operations explains all answers of this bucket of %d tokens", len(history), tokens)
	case porcupine.Unknown:
		v.doubt("bucket %s: no order of %d operations found within %v", name, len(history), search)
	}
}

// shortest is the part of a history up to the first return without which there is
// an order: the last operation in it is the one that cannot be explained.
func shortest(start []uint64, ops []Op, search time.Duration) []Op {
	ended := byReturn(ops)
	low, high := 0, len(ended) // the first low are in order, the first high are not
	for high-low > 1 {
		mid := (low + high) / 2
		part := upToReturn(ops, ended[mid-1].Return)
		if result, _ := porcupine.CheckOperationsVerbose(linearModel(start, part), linearHistory(part), search); result == porcupine.Illegal {
			high = mid
		} else {
			low = mid
		}
	}
	part := byReturn(upToReturn(ops, ended[high-1].Return))
	n := 0
	for n < len(part) && part[n].Return <= ended[high-1].Return {
		n++
	}
	return part[max(0, n-6):n]
}

// upToReturn is a history as it was known at a time: what had not returned is unknown.
func upToReturn(ops []Op, at time.Duration) (out []Op) {
	for _, o := range ops {
		if o.Call > at {
			continue
		}
		if o.Return > at && o.Return != Forever {
			o.Outcome, o.Return = Unknown, Forever
		}
		out = append(out, o)
	}
	return out
}

func refunded(ops []Op) bool {
	for i := range ops {
		if ops[i].Kind == Refund && ops[i].Outcome != Refused {
			return true
		}
	}
	return false
}

func clients(ops []Op) int {
	seen := make(map[int]bool)
	for i := range ops {
		seen[ops[i].Client] = true
	}
	return len(seen)
}

func linearHistory(ops []Op) (out []porcupine.Operation) {
	for i := range ops {
		o := &ops[i]
		if !o.takes() && o.Kind != Look || o.Outcome == Refused || o.Kind == Look && !o.answered() || o.elsewhere() || o.Outcome != Unknown && !o.answered() || o.Witness.Uncommitted {
			continue
		}
		end := int64(o.Return)
		if o.Outcome == Unknown {
			end = math.MaxInt64
		}
		out = append(out, porcupine.Operation{ClientId: o.Client, Input: o, Output: o, Call: int64(o.Call), Return: end})
	}
	return out
}

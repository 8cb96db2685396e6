package check

import (
	"slices"

	"github.com/ringlimit/ringlimit/bucket"
)

// Loss is the beginning of an epoch of a group: what the group had held was gone.
// From is when it had certainly not begun, To when it certainly had.
type Loss struct {
	Group, Epoch uint32
	Span
}

// knowing is s with every loss that the answers show beside those of Setup.Losses.
// Skipped epochs are one loss with the next that is seen. Cost: linear.
func (s *Setup) knowing(ops []Op) *Setup {
	if s.known {
		return s
	}
	k := *s
	k.known = true
	at := make(map[logName]Span) // last call and first return that are committed in a log
	for i := range ops {
		o := &ops[i]
		w := &o.Witness
		if w.Index == 0 || w.Uncommitted || !o.answered() {
			continue
		}
		n := logName{w.Group, w.Epoch}
		p, seen := at[n]
		if !seen {
			p.To = Forever
		}
		at[n] = Span{max(p.From, o.Call), min(p.To, o.Return)}
	}
	losses := make(map[logName]Span)
	for _, l := range s.Losses {
		losses[logName{l.Group, l.Epoch}] = l.Span
	}
	for n, p := range at {
		if l, told := losses[n]; n.epoch > 1 && !told {
			losses[n] = Span{0, p.To}
		} else if told {
			losses[n] = Span{l.From, min(l.To, p.To)}
		}
	}
	k.Losses = nil
	for n, l := range losses {
		for o, p := range at {
			if o.group == n.group && o.epoch < n.epoch {
				l.From = max(l.From, p.From)
			}
		}
		k.Losses = append(k.Losses, Loss{n.group, n.epoch, l})
	}
	slices.SortFunc(k.Losses, func(a, b Loss) int {
		if a.Group != b.Group {
			return compare(a.Group, b.Group)
		}
		return compare(a.Epoch, b.Epoch)
	})
	return &k
}

// lossesOf are those that may have hit a bucket.
func (s *Setup) lossesOf(ops []Op) (out []Loss) {
	if len(s.Losses) == 0 {
		return nil
	}
	groups := make(map[uint32]bool)
	for i := range ops {
		if w := &ops[i].Witness; w.Index > 0 {
			groups[w.Group] = true
		}
	}
	for _, l := range s.Losses {
		if !s.Still || len(groups) == 0 || groups[l.Group] {
			out = append(out, l)
		}
	}
	return out
}

// lost says whether a bucket may have lost its state between two operations on it.
func (s *Setup) lost(a, b *Op) bool {
	p, q := &a.Witness, &b.Witness
	if p.Index > 0 && q.Index > 0 && p.Group == q.Group {
		return p.Epoch != q.Epoch
	}
	from, to := min(a.Call, b.Call), max(a.Return, b.Return)
	for _, l := range s.Losses {
		elsewhere := s.Still && (p.Index > 0 && p.Group != l.Group || q.Index > 0 && q.Group != l.Group)
		if !elsewhere && l.overlaps(from, to) {
			return true
		}
	}
	return false
}

// gifts are the tokens that losses may have given a bucket: at most what it holds,
// for each of them, unless all counted as used.
func (s *Setup) gifts(name string, ops []Op) (out []Given) {
	if s.OnLoss[name] == bucket.LossEmpty {
		return nil
	}
	for _, l := range s.lossesOf(ops) {
		out = append(out, Given{name, s.largest(name), l.Span})
	}
	return out
}

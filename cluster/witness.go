package cluster

import (
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/policy"
)

// Tests ask where in which log an answer was made, to put all answers in order and
// make them again. Nobody else does, and pays nothing.

// witness says where request k of a call to a group was decided.
func witness(o *group.Outcome, k int, id, epoch uint32) *pb.Witness {
	w := &pb.Witness{
		Group: id, Epoch: epoch, Term: o.Term, Index: o.Applied, SlotTimeNs: o.Results.Items[k].SlotTime,
		Uncommitted: o.Uncommitted[k], Repeated: repeated(&o.Results, k),
	}
	if w.Uncommitted {
		return w
	}
	w.Index, w.Position = o.Index, uint32(o.First+1)
	for _, ahead := range o.Uncommitted[:k] {
		if !ahead {
			w.Position++
		}
	}
	return w
}

// repeated says whether item k tells what became of its id earlier.
func repeated(r *bucket.Results, k int) bool {
	item := &r.Items[k]
	for _, a := range r.Answers[item.First : item.First+item.Count] {
		if a.Reason == bucket.ReasonRefunded || a.Reason == bucket.ReasonDeniedElsewhere {
			return true
		}
	}
	return item.Code == bucket.Repeated
}

// witnessLimits gives a witness of their own to limits in other slots than home, if
// d has one: of those in the same log the slot time is not known, of others nothing.
func witnessLimits(d *pb.Decision, home uint16, hits []policy.Hit, near int) {
	if d.Witness == nil {
		return
	}
	for _, l := range d.Limits {
		for i := range hits {
			if h := &hits[i]; h.Policy.ID != l.PolicyId || h.Slot == home {
				continue
			}
			l.Witness = new(pb.Witness)
			if w := d.Witness; i < near {
				*l.Witness = pb.Witness{
					Group: w.Group, Epoch: w.Epoch, Term: w.Term, Index: w.Index, Position: w.Position,
					Uncommitted: w.Uncommitted, Repeated: w.Repeated,
				}
			}
		}
	}
}

package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// A Decision has the fields of a LimitDecision under the same numbers, 1 … 9, and
// some of its own. Both are read and written by the same code: the headline of a
// decision is a LimitDecision on its way.

func (a *Answers) decision(outer *span) error {
	s, err := outer.sub()
	if err != nil {
		return err
	}
	if a.result.Decision == nil {
		limits := a.value.Limits[:0]
		a.value, a.head = pb.Decision{Limits: limits}, pb.LimitDecision{}
		a.limits.reset(64)
		a.result.Decision = &a.value
	}
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case num < 10 && typ == protowire.VarintType:
			err = sharedNumber(&s, &a.head, num)
		case typ == protowire.VarintType:
			err = number(&s, &a.value, num)
		case num < 10:
			err = a.shared(&s, &a.head, num, typ)
		case num == 15 && typ == protowire.BytesType:
			err = a.limit(&s)
		case num == 18 && typ == protowire.BytesType:
			a.value.PermitId, err = text(&s)
		case num == 20 && typ == protowire.BytesType:
			a.value.Witness, err = witness(&s, a.value.Witness)
		case num == 22 && typ == protowire.BytesType:
			a.value.Lease, err = lease(&s, a.value.Lease)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	d, h := &a.value, &a.head
	d.Allowed, d.Limit, d.Remaining = h.Allowed, h.Limit, h.Remaining
	d.ResetAfterNs, d.RetryAfterNs, d.DelayNs = h.ResetAfterNs, h.RetryAfterNs, h.DelayNs
	d.PolicyId, d.PolicyVersion, d.Reason = h.PolicyId, h.PolicyVersion, h.Reason
	return nil
}

// number reads a varint that only a decision has.
func number(s *span, d *pb.Decision, num protowire.Number) error {
	v, err := s.varint()
	switch num {
	case 10:
		d.Degraded = v != 0
	case 11:
		d.Uncommitted = v != 0
	case 12:
		d.Epoch = uint32(v)
	case 13:
		d.Group = uint32(v)
	case 14:
		d.Index = v
	case 16:
		d.Term = v
	case 17:
		d.SlotTimeNs = int64(v)
	case 19:
		d.FencingToken = v
	case 21:
		d.Leased = v != 0
	}
	return err
}

func (a *Answers) limit(outer *span) error {
	s, err := outer.sub()
	if err != nil {
		return err
	}
	l := a.limits.next()
	*l = pb.LimitDecision{}
	a.value.Limits = append(a.value.Limits, l)
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case num < 10 || typ == protowire.VarintType:
			err = a.shared(&s, l, num, typ)
		case num == 10 && typ == protowire.BytesType:
			l.PermitId, err = text(&s)
		case num == 13 && typ == protowire.BytesType:
			l.Witness, err = witness(&s, l.Witness)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lease reads what was granted, which is rare: a lease stands for many decisions.
func lease(outer *span, l *pb.Lease) (*pb.Lease, error) {
	s, err := outer.sub()
	if err != nil {
		return l, err
	}
	if l == nil {
		l = new(pb.Lease)
	}
	return l, proto.UnmarshalOptions{Merge: true}.Unmarshal(s.bytes(), l)
}

// witness reads where an answer was made, which only tests ask for.
func witness(outer *span, w *pb.Witness) (*pb.Witness, error) {
	s, err := outer.sub()
	if err != nil {
		return w, err
	}
	if w == nil {
		w = new(pb.Witness)
	}
	return w, proto.UnmarshalOptions{Merge: true}.Unmarshal(s.bytes(), w)
}

// shared reads a field of a limit, or of a decision's headline.
func (a *Answers) shared(s *span, l *pb.LimitDecision, num protowire.Number, typ protowire.Type) (err error) {
	switch {
	case typ == protowire.VarintType:
		return sharedNumber(s, l, num)
	case num == 7 && typ == protowire.BytesType:
		l.PolicyId, err = a.name(s)
	case num == 9 && typ == protowire.BytesType:
		l.Reason, err = a.name(s)
	default:
		err = s.skip(num, typ)
	}
	return err
}

func sharedNumber(s *span, l *pb.LimitDecision, num protowire.Number) error {
	v, err := s.varint()
	switch num {
	case 1:
		l.Allowed = v != 0
	case 2:
		l.Limit = v
	case 3:
		l.Remaining = v
	case 4:
		l.ResetAfterNs = int64(v)
	case 5:
		l.RetryAfterNs = int64(v)
	case 6:
		l.DelayNs = int64(v)
	case 8:
		l.PolicyVersion = v
	case 11:
		l.FencingToken = v
	case 12:
		l.Shadow = v != 0
	case 14:
		l.UnitCost = v
	}
	return err
}

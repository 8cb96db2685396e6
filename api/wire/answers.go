package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// Answers reads StreamResponses, one result after the other, in memory that it
// reuses: what Next returned is valid until the next call. Strings are shared
// between results and stay valid. It is not safe for concurrent use.
type Answers struct {
	ID      uint64      // of the message; 0: routing only
	Routing *pb.Routing // nil: none
	Len     int         // results

	rest   span
	names  map[string]string // policy ids and reasons seen
	result pb.Result
	value  pb.Decision
	limits slab[pb.LimitDecision]
}

// maxNames bounds the strings that are shared; beyond, each is its own.
const maxNames = 4096

// Parse begins a message. b must not change until its last result was read.
func (a *Answers) Parse(b []byte) error {
	a.ID, a.Routing, a.Len = 0, nil, 0
	a.rest = span{b: b, end: len(b)}
	for s := a.rest; s.more(); {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case num == 1 && typ == protowire.VarintType:
			a.ID, err = s.varint()
		case num == 2 && typ == protowire.BytesType:
			a.Len++
			_, err = s.sub()
		case num == 3 && typ == protowire.BytesType:
			err = a.routing(&s)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Answers) routing(s *span) error {
	in, err := s.sub()
	if err != nil {
		return err
	}
	if a.Routing == nil {
		a.Routing = new(pb.Routing)
	}
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(in.bytes(), a.Routing)
}

// Next returns the next result, or nil after the last.
func (a *Answers) Next() (*pb.Result, error) {
	for a.rest.more() {
		num, typ, err := a.rest.next()
		if err != nil {
			return nil, err
		}
		if num != 2 || typ != protowire.BytesType {
			if err := a.rest.skip(num, typ); err != nil {
				return nil, err
			}
			continue
		}
		in, err := a.rest.sub()
		if err != nil {
			return nil, err
		}
		return &a.result, a.read(in)
	}
	return nil, nil
}

func (a *Answers) read(s span) error {
	a.result = pb.Result{}
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case num == 1 && typ == protowire.BytesType:
			err = a.decision(&s)
		case num == 2 && typ == protowire.BytesType:
			err = a.failure(&s)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *Answers) failure(s *span) error {
	in, err := s.sub()
	if err != nil {
		return err
	}
	if a.result.Error == nil {
		a.result.Error = new(pb.Error)
	}
	return proto.UnmarshalOptions{Merge: true}.Unmarshal(in.bytes(), a.result.Error)
}

func (a *Answers) decision(outer *span) error {
	s, err := outer.sub()
	if err != nil {
		return err
	}
	if a.result.Decision == nil {
		limits := a.value.Limits[:0]
		a.value = pb.Decision{Limits: limits}
		a.limits.reset(64)
		a.result.Decision = &a.value
	}
	for s.more() {
		num, typ, err := s.next()
		switch {
		case err != nil:
		case typ == protowire.VarintType:
			err = number(&s, a.result.Decision, num)
		case typ != protowire.BytesType:
			err = s.skip(num, typ)
		case num == 7:
			a.value.PolicyId, err = a.name(&s)
		case num == 9:
			a.value.Reason, err = a.name(&s)
		case num == 15:
			err = a.limit(&s)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func number(s *span, d *pb.Decision, num protowire.Number) error {
	v, err := s.varint()
	switch num {
	case 1:
		d.Allowed = v != 0
	case 2:
		d.Limit = v
	case 3:
		d.Remaining = v
	case 4:
		d.ResetAfterNs = int64(v)
	case 5:
		d.RetryAfterNs = int64(v)
	case 6:
		d.DelayNs = int64(v)
	case 8:
		d.PolicyVersion = v
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
		case typ == protowire.VarintType:
			err = limitNumber(&s, l, num)
		case num == 7 && typ == protowire.BytesType:
			l.PolicyId, err = a.name(&s)
		case num == 9 && typ == protowire.BytesType:
			l.Reason, err = a.name(&s)
		default:
			err = s.skip(num, typ)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func limitNumber(s *span, l *pb.LimitDecision, num protowire.Number) error {
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
	}
	return err
}

// name reads a string that is likely to have been seen before.
func (a *Answers) name(s *span) (string, error) {
	in, err := s.sub()
	if err != nil {
		return "", err
	}
	if v, ok := a.names[string(in.bytes())]; ok {
		return v, nil
	}
	if !utf8.Valid(in.bytes()) {
		return "", malformed()
	}
	v := string(in.bytes())
	if a.names == nil {
		a.names = make(map[string]string)
	}
	if len(a.names) < maxNames {
		a.names[v] = v
	}
	return v, nil
}

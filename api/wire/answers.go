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

	source source
	rest   span
	names  map[string]string // policy ids and reasons seen
	result pb.Result
	value  pb.Decision
	head   pb.LimitDecision // the headline of value, while it is read
	limits slab[pb.LimitDecision]
}

// maxNames bounds the strings that are shared; beyond, each is its own.
const maxNames = 4096

// Parse begins a message. b must not change until its last result was read.
func (a *Answers) Parse(b []byte) error {
	a.ID, a.Routing, a.Len = 0, nil, 0
	a.rest = a.source.read(b, false)
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

// text reads a string that is not likely to come again.
func text(s *span) (string, error) {
	in, err := s.sub()
	if err != nil {
		return "", err
	}
	if !utf8.Valid(in.bytes()) {
		return "", malformed()
	}
	return string(in.bytes()), nil
}

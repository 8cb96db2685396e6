package policy

import (
	"bytes"
	"slices"
	"strconv"
)

// scanner reads what appendJSON wrote, and nothing else: at the first thing
// that is unlike it, the scanner is bad and package json has the word. It takes
// a fifth of the time of that, and keeps each name once.
type scanner struct {
	b     []byte
	bad   bool
	names map[string]string
}

// scanPolicies reads the policies of a set from its canonical form, and returns
// that form without them. Not ok: package json must read the whole.
func scanPolicies(data []byte) (policies []*Policy, rest []byte, ok bool) {
	// No quote stands in a string unescaped, hence this is the member.
	key := []byte(`,"policies":[`)
	at := bytes.Index(data, key)
	if at < 0 {
		return nil, nil, false
	}
	from := at + len(key)
	s := scanner{b: data[from:], names: map[string]string{}}
	for !s.bad && !s.lit("]") {
		if len(policies) > 0 && !s.lit(",") {
			return nil, nil, false
		}
		in := s.policy()
		if s.bad {
			return nil, nil, false
		}
		p, err := in.policy()
		if err != nil {
			return nil, nil, false
		}
		policies = append(policies, p)
	}
	return slices.Clip(policies), slices.Concat(data[:from], []byte("]"), s.b), !s.bad
}

// policy reads one object.
func (s *scanner) policy() (p policyJSON) {
	s.want(`{"id":`)
	p.ID = s.text()
	s.want(`,"version":`)
	p.Version = s.uint()
	p.Family = s.word(`,"family":`)
	s.want(`,"match":{`)
	p.Match = map[string]string{}
	for !s.bad && !s.lit("}") {
		if len(p.Match) > 0 {
			s.want(",")
		}
		name := s.name()
		s.want(":")
		if _, twice := p.Match[name]; twice {
			s.bad = true
		}
		p.Match[name] = s.text()
	}
	s.want(`,"scope":[`)
	p.Scope = []string{}
	for !s.bad && !s.lit("]") {
		if len(p.Scope) > 0 {
			s.want(",")
		}
		p.Scope = append(p.Scope, s.name())
	}
	s.want(`,"algorithm":`)
	p.Algorithm = s.name()
	s.want(`,"amount":`)
	p.Amount = s.uint()
	s.want(`,"window_ns":`)
	p.Window = s.int()
	s.want(`,"burst":`)
	p.Burst = s.uint()
	s.extras(&p)
	return p
}

// extras reads what is left out where it has its default.
func (s *scanner) extras(p *policyJSON) {
	if s.lit(`,"cost":{"default":`) {
		p.Cost = &costJSON{Default: s.uint()}
		if s.lit(`,"classes":`) {
			s.bad = true // rare
		}
		s.want("}")
	}
	if s.lit(`,"on_unavailable":{"mode":`) {
		u := &unavailableJSON{Mode: s.name()}
		s.want(`,"after_ns":`)
		u.After = s.int()
		if s.lit(`,"for_ns":`) {
			u.For = s.int()
		}
		u.Then = s.word(`,"then":`)
		s.want("}")
		p.OnUnavailable = u
	}
	p.OnStateLoss = s.word(`,"on_state_loss":`)
	p.Mode = s.word(`,"mode":`)
	p.Consistency = s.word(`,"consistency":`)
	if s.lit(`,"source":`) {
		p.Source = s.text()
	}
	s.want("}")
}

// lit skips a text if it is next.
func (s *scanner) lit(text string) bool {
	if len(s.b) < len(text) || string(s.b[:len(text)]) != text {
		return false
	}
	s.b = s.b[len(text):]
	return true
}

// want skips a text that must be next.
func (s *scanner) want(text string) {
	if !s.lit(text) {
		s.bad = true
	}
}

// word reads a member of few values, "" if it is not next.
func (s *scanner) word(key string) string {
	if !s.lit(key) {
		return ""
	}
	return s.name()
}

// raw reads a string in which nothing is escaped.
func (s *scanner) raw() []byte {
	if s.bad || !s.lit(`"`) {
		s.bad = true
		return nil
	}
	for i, c := range s.b {
		switch {
		case c == '"':
			out := s.b[:i]
			s.b = s.b[i+1:]
			return out
		case c < ' ' || c > '~' || c == '\\':
			s.bad = true
			return nil
		}
	}
	s.bad = true
	return nil
}

func (s *scanner) text() string { return string(s.raw()) }

// name is a string that many policies have.
func (s *scanner) name() string {
	b := s.raw()
	if known, ok := s.names[string(b)]; ok {
		return known
	}
	name := string(b)
	s.names[name] = name
	return name
}

// digits reads a number as package json writes it.
func (s *scanner) digits() string {
	n := 0
	for n < len(s.b) && (s.b[n] == '-' && n == 0 || '0' <= s.b[n] && s.b[n] <= '9') {
		n++
	}
	d := s.b[:n]
	s.b = s.b[n:]
	if len(d) > 1 && (d[0] == '0' || d[0] == '-' && d[1] == '0') {
		s.bad = true
	}
	return string(d)
}

func (s *scanner) uint() uint64 {
	v, err := strconv.ParseUint(s.digits(), 10, 64)
	s.bad = s.bad || err != nil
	return v
}

func (s *scanner) int() int64 {
	v, err := strconv.ParseInt(s.digits(), 10, 64)
	s.bad = s.bad || err != nil
	return v
}

package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseOne reads one policy in the form that it has as an element of policies in a
// file; JSON is a case of that. What it says is judged by the set that it is put
// into, as far as that depends on it: see CheckChanged. source is what
// Policy.Source will be. Every error is a *ParseError whose field is that of the
// policy, without line and column.
func ParseOne(source string, data []byte) (*Policy, error) {
	p, err := parseOne(data)
	if err != nil {
		e := *err.(*ParseError) // all errors of this package are
		e.Line, e.Column = 0, 0
		e.Field = strings.TrimPrefix(strings.TrimPrefix(e.Field, "policies[0]"), ".")
		return nil, &e
	}
	p.Source = source
	return p, nil
}

func parseOne(data []byte) (p *Policy, err error) {
	defer func() {
		if fate := recover(); fate != nil { // see parseWarn
			p, err = nil, invalid("", "not readable: %v", fate)
		}
	}()
	r := newReader("")
	r.places = nil
	if err := r.checkShape(data); err != nil {
		return nil, err
	}
	n, err := r.parseYAML(string(data), 1)
	if err != nil {
		return nil, err
	}
	if p, err = r.policy(&n, 0); err != nil {
		return nil, err
	}
	if err := p.checkNewNames(); err != nil {
		return nil, err
	}
	return p, p.checkAlone()
}

// checkAlone judges what does not depend on the set around p.
func (p *Policy) checkAlone() error {
	// These are all classes that p could mean: whether there are such, its set knows.
	set := Set{RouteClasses: []RouteClass{{Name: strings.TrimSuffix(p.Match.Get("route_class"), "*")}}}
	for name := range p.Cost.Classes {
		set.RouteClasses = append(set.RouteClasses, RouteClass{Name: name})
	}
	return set.checkPolicy(p)
}

// AppendFile appends p as an element of policies in a file says it, as JSON, with its
// version: what has its default is left out, except the limit and the scope. Without
// the version, ParseOne makes the same policy of it.
func (p *Policy) AppendFile(dst []byte) []byte {
	n := p.normal()
	dst = appendText(append(dst, `{"id":`...), n.ID)
	if n.Version > 0 {
		dst = strconv.AppendUint(append(dst, `,"version":`...), n.Version, 10)
	}
	dst = n.Match.appendJSON(append(dst, `,"match":`...))
	dst = appendWord(dst, "family", n.Family)
	dst = appendAny(append(dst, `,"scope":`...), n.Scope)
	dst = appendWord(dst, "algorithm", n.Limit.Algorithm.String())
	dst = strconv.AppendUint(append(dst, `,"amount":`...), n.Limit.Amount, 10)
	dst = appendWord(dst, "window", time.Duration(n.Limit.Window).String())
	if hasBurst(n.Limit.Algorithm) {
		dst = strconv.AppendUint(append(dst, `,"burst":`...), n.Limit.Burst, 10)
	}
	if !n.Cost.same(Cost{}.normal()) {
		dst = n.Cost.appendFile(append(dst, `,"cost":`...))
	}
	if n.OnUnavailable != (OnUnavailable{}).normal() {
		dst = n.OnUnavailable.appendFile(append(dst, `,"on_unavailable":`...))
	}
	dst = appendWord(dst, "on_state_loss", unlessFirst(stateLosses, uint8(n.OnStateLoss)))
	dst = appendWord(dst, "mode", unlessFirst(modes, uint8(n.Mode)))
	dst = appendWord(dst, "consistency", unlessFirst(consistencies, uint8(n.Consistency)))
	return append(dst, '}')
}

// appendFile writes a number, or numbers by route class.
func (c Cost) appendFile(dst []byte) []byte {
	if len(c.Classes) == 0 {
		return strconv.AppendUint(dst, c.Default, 10)
	}
	dst = strconv.AppendUint(append(dst, `{"default":`...), c.Default, 10)
	for _, name := range slices.Sorted(maps.Keys(c.Classes)) {
		dst = append(appendText(append(dst, ','), name), ':')
		dst = strconv.AppendUint(dst, c.Classes[name], 10)
	}
	return append(dst, '}')
}

func (u OnUnavailable) appendFile(dst []byte) []byte {
	dst = appendText(append(dst, `{"mode":`...), u.Mode.String())
	dst = appendWord(dst, "after", u.afterText())
	if u.Mode == Open {
		dst = appendWord(dst, "for", u.For.String())
		dst = appendWord(dst, "then", u.Then.String())
	}
	return append(dst, '}')
}

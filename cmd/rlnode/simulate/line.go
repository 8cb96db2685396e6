package simulate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// line reads one line of a trace. Its memory is used again for the next line.
type line struct {
	scan
	event   Event
	columns []named // where the values of fields begin
	short   policy.Principal
}

type named struct {
	field  string
	column int
}

// wrong is an error about a field, or about the line as a whole.
func (l *line) wrong(field, format string, args ...any) error {
	at := 1
	top, _, _ := strings.Cut(field, "[")
	for _, c := range l.columns {
		if c.field == top {
			at = c.column
		}
	}
	return &columnError{at, fmt.Sprintf(format, args...)}
}

// has says whether the line has a field.
func (l *line) has(field string) bool {
	for i := range l.columns {
		if l.columns[i].field == field {
			return true
		}
	}
	return false
}

// note keeps where the value of a field begins; each may come once.
func (l *line) note(field string, at int) error {
	if l.has(field) {
		return wrongAt(at, "%q is given twice", field)
	}
	l.columns = append(l.columns, named{field, l.at + 1})
	return nil
}

func (l *line) read(b []byte) error {
	r := &l.event.Request
	*r = policy.Request{Cost: 1, Principals: r.Principals[:0], Attributes: r.Attributes[:0], Costs: r.Costs[:0]}
	l.event.T, l.event.Time = "", 0
	l.scan = scan{text: string(b)}
	l.columns, l.short = l.columns[:0], policy.Principal{}
	if err := l.open('{', "an object"); err != nil {
		return err
	}
	for first := true; ; first = false {
		name, at, ok, err := l.key(first)
		if ok {
			if err = l.note(name, at); err == nil {
				err = l.field(name, at)
			}
		}
		if err != nil {
			return err
		}
		if !ok {
			break
		}
	}
	if l.next() != 0 || l.at < len(l.text) {
		return wrongAt(l.at, "more after the object, want one object a line")
	}
	return nil
}

// field reads one of the fields of a line.
func (l *line) field(name string, at int) (err error) {
	e := &l.event
	switch name {
	case "t":
		e.T, err = l.string("a decimal string of seconds such as \"59.01\"")
	case "cost":
		e.Request.Cost, err = l.cost()
	case "costs":
		err = l.costs()
	case "request":
		err = l.request()
	default:
		err = wrongAt(at, "unknown field %q, want t, cost, costs or request", name)
	}
	return err
}

// cost reads a whole number.
func (l *line) cost() (uint64, error) {
	l.next()
	at := l.at
	text := l.number()
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil || v > bucket.MaxAmount || text[0] == '+' || len(text) > 1 && text[0] == '0' {
		return 0, wrongAt(at, "%q, want a whole number, 0 to %d", text, bucket.MaxAmount)
	}
	return v, nil
}

func (l *line) costs() error {
	if err := l.open('{', "an object of policies and their costs"); err != nil {
		return err
	}
	for first := true; ; first = false {
		id, _, ok, err := l.key(first)
		if !ok {
			return err
		}
		n, err := l.cost()
		if err != nil {
			return err
		}
		l.event.Request.Costs = append(l.event.Request.Costs, policy.PolicyCost{Policy: id, Cost: n})
	}
}

func (l *line) request() error {
	if err := l.open('{', "an object"); err != nil {
		return err
	}
	for first := true; ; first = false {
		name, at, ok, err := l.key(first)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err = l.note(name, at); err == nil {
			err = l.requestField(name, at)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case l.short.Type == "" && l.short.ID == "":
	case l.short.Type == "" || l.short.ID == "":
		return l.wrong("request", "principal_type and principal_id go together")
	default:
		l.event.Request.Principals = append(l.event.Request.Principals, l.short)
	}
	return nil
}

func (l *line) requestField(name string, at int) (err error) {
	const text = "a string"
	r := &l.event.Request
	switch name {
	case "tenant":
		r.Tenant, err = l.string(text)
	case "route":
		r.Route, err = l.string(text)
	case "plan":
		r.Plan, err = l.string(text)
	case "region":
		r.Region, err = l.string(text)
	case "principal_type":
		l.short.Type, err = l.string(text)
	case "principal_id":
		l.short.ID, err = l.string(text)
	case "principals":
		err = l.principals()
	case "attributes":
		err = l.attributes()
	default:
		err = wrongAt(at, "unknown field %q, want tenant, route, plan, region, principal_type, principal_id, principals or attributes", name)
	}
	return err
}

func (l *line) attributes() error {
	if err := l.open('{', "an object of names and values"); err != nil {
		return err
	}
	for first := true; ; first = false {
		name, _, ok, err := l.key(first)
		if !ok {
			return err
		}
		value, err := l.string("a string")
		if err != nil {
			return err
		}
		l.event.Request.Attributes = append(l.event.Request.Attributes, policy.Attribute{Name: name, Value: value})
	}
}

// principals reads a list of {"type": …, "id": …}.
func (l *line) principals() error {
	if err := l.open('[', "a list of principals"); err != nil {
		return err
	}
	for first := true; ; first = false {
		if ok, err := l.more(first, ']'); !ok {
			return err
		}
		p, err := l.principal()
		if err != nil {
			return err
		}
		l.event.Request.Principals = append(l.event.Request.Principals, p)
	}
}

func (l *line) principal() (p policy.Principal, err error) {
	if err := l.open('{', "an object with type and id"); err != nil {
		return p, err
	}
	for first := true; ; first = false {
		name, at, ok, err := l.key(first)
		if !ok {
			return p, err
		}
		switch name {
		case "type":
			p.Type, err = l.string("a string")
		case "id":
			p.ID, err = l.string("a string")
		default:
			err = wrongAt(at, "unknown field %q, want type and id", name)
		}
		if err != nil {
			return p, err
		}
	}
}

package rest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// request is one decision as a body asks for it, with room for the usual one.
type request struct {
	decide  pb.DecideRequest
	subject subject
	cost    int64
}

// subject is who asks, as a body says it: principal_type and principal_id are one
// principal, method and a bare path one route.
type subject struct {
	pb     pb.Subject
	short  pb.Principal
	list   [1]*pb.Principal
	method string
	given  bool // a method
}

// subjectFields are the names that member knows, for those that it does not.
const subjectFields = "principal_type, principal_id, principals, tenant, route, method, plan, region, attributes"

// member reads one member; known is false if it has another name.
func (m *subject) member(s *scan, name string) (known bool, err error) {
	switch name {
	case "principal_type":
		m.short.Type, err = s.textValue()
	case "principal_id":
		m.short.Id, err = s.textValue()
	case "principals":
		err = m.principals(s)
	case "tenant":
		m.pb.Tenant, err = s.textValue()
	case "route":
		m.pb.Route, err = s.textValue()
	case "method":
		m.given = true
		m.method, err = s.textValue()
	case "plan":
		m.pb.Plan, err = s.textValue()
	case "region":
		m.pb.Region, err = s.textValue()
	case "attributes":
		err = m.attributes(s)
	default:
		return false, nil
	}
	return true, err
}

func (m *subject) principals(s *scan) error {
	return s.list("a list of objects with type and id", func(i int) error {
		if i == wire.MaxPrincipals {
			return fault.Field("", "one too many, want at most %d", wire.MaxPrincipals)
		}
		p := new(pb.Principal)
		m.pb.Principals = append(m.pb.Principals, p)
		return s.object("an object with type and id", func(name string) (err error) {
			switch name {
			case "type":
				p.Type, err = s.textValue()
			case "id":
				p.Id, err = s.textValue()
			default:
				err = fault.Field("", "is unknown, want type and id")
			}
			return err
		})
	})
}

func (m *subject) attributes(s *scan) error {
	return s.object("an object of names and strings", func(name string) error {
		if len(m.pb.Attributes) == wire.MaxAttributes {
			return fault.Field("", "one too many, want at most %d", wire.MaxAttributes)
		}
		value, err := s.textValue()
		m.pb.Attributes = append(m.pb.Attributes, &pb.Attribute{Name: name, Value: value})
		return err
	})
}

// done puts together what was read.
func (m *subject) done() error {
	switch {
	case m.short.Type == "" && m.short.Id == "":
	case m.short.Type == "":
		return fault.Field("principal_type", "missing, want the type of principal_id, such as user, ip or api_key")
	case m.short.Id == "":
		return fault.Field("principal_id", "missing, want the id of the %s", printable(m.short.Type))
	case len(m.pb.Principals) == wire.MaxPrincipals:
		return fault.Field("principal_type", "one principal too many, want at most %d", wire.MaxPrincipals)
	case len(m.pb.Principals) == 0:
		m.list[0] = &m.short
		m.pb.Principals = m.list[:]
	default:
		m.pb.Principals = append(m.pb.Principals, &m.short)
	}
	return m.route()
}

// route makes METHOD:/path of a method and a path. A route may also come whole;
// then a method beside it must be the same.
func (m *subject) route() error {
	if !m.given || m.method == "" {
		return nil
	}
	method, _, whole := strings.Cut(m.pb.Route, ":/")
	whole = whole && !strings.Contains(method, "/") // a colon may also stand in a path
	switch {
	case m.pb.Route == "":
		return fault.Field("method", "%s without a route, want the route too", printable(m.method))
	case !whole && !strings.HasPrefix(m.pb.Route, "/"):
		return fault.Field("route", "%s, want a path such as /v1/items, or METHOD:/path", printable(m.pb.Route))
	case !whole:
		m.pb.Route = m.method + ":" + m.pb.Route
	case method != m.method:
		return fault.Field("method", "%s, want %s as in the route, or none", printable(m.method), printable(method))
	}
	return nil
}

// read reads one decision. batch says that it may have an id of its own.
func (q *request) read(s *scan, batch bool) error {
	err := s.object("an object", func(name string) error {
		known, err := q.subject.member(s, name)
		switch {
		case known:
			return err
		case name == "cost":
			n, err := s.whole(wire.MaxCost)
			q.cost, q.decide.Cost = int64(n), &q.cost
			return err
		case name == "request_id" && batch:
			q.decide.RequestId, err = s.textValue()
			if err == nil {
				err = checkID(q.decide.RequestId)
			}
			return err
		case batch:
			return fault.Field("", "is unknown, want %s, cost or request_id", subjectFields)
		default:
			return fault.Field("", "is unknown, want %s or cost", subjectFields)
		}
	})
	q.decide.Subject = &q.subject.pb
	return err
}

// done puts together what was read and holds it to the rules that need no policy.
func (q *request) done() error {
	if err := q.subject.done(); err != nil {
		return err
	}
	return wire.CheckDecide(&q.decide)
}

// checkID judges a caller's own request id.
func checkID(id string) error {
	switch {
	case id == "" || len(id) > wire.MaxRequestID:
		return fault.Field("", "%d bytes, want 1 … %d", len(id), wire.MaxRequestID)
	case !isPrintable(id):
		return fault.Field("", "%s, want printable ASCII", printable(id))
	}
	return nil
}

// located gives an error about a request, which the node found, the names that the
// body has for what is wrong: attributes there have no index, and the short form of
// a principal is the last one.
func (m *subject) located(err error) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.InvalidArgument {
		return err
	}
	out := *e
	out.Field = strings.TrimPrefix(e.Field, "subject.")
	if i, rest, ok := indexed(out.Field, "attributes"); ok && i < len(m.pb.Attributes) {
		out.Field = "attributes." + m.pb.Attributes[i].Name
		if rest == "name" {
			out.Message = "the name: " + out.Message
		}
	}
	if i, rest, ok := indexed(out.Field, "principals"); ok && i < len(m.pb.Principals) && m.pb.Principals[i] == &m.short {
		out.Field = "principal_" + rest
	}
	return &out
}

// indexed takes list[i].rest apart.
func indexed(field, list string) (i int, rest string, ok bool) {
	inner, ok := strings.CutPrefix(field, list+"[")
	if !ok {
		return 0, "", false
	}
	number, rest, ok := strings.Cut(inner, "].")
	if !ok {
		return 0, "", false
	}
	i, err := strconv.Atoi(number)
	return i, rest, err == nil && i >= 0
}

// at is the path of request i of a batch.
func at(i int) string { return fmt.Sprintf("requests[%d]", i) }

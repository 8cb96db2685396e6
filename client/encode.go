package client

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/api/wire"
)

// maxEncoded bounds one request, far above what the rules for attributes allow,
// so that no caller's request can crowd out those it is sent with.
const maxEncoded = 64 << 10

// check refuses what could not be sent. The nodes check the rest.
func (r *Request) check() error {
	switch {
	case r.Cost < 0 || r.Cost > wire.MaxCost:
		return fault.Field("cost", "must be 0 to %d, is %d", wire.MaxCost, r.Cost)
	case r.Look && r.Cost != 0:
		return fault.Field("cost", "must be 0 for a look, is %d", r.Cost)
	case len(r.Costs) > wire.MaxCosts:
		return fault.Field("costs", "must be at most %d, are %d", wire.MaxCosts, len(r.Costs))
	case r.Look && len(r.Costs) > 0:
		return fault.Field("costs", "must be absent for a look")
	case len(r.RequestID) > wire.MaxRequestID:
		return fault.Field("request_id", "must be at most %d bytes, is %d", wire.MaxRequestID, len(r.RequestID))
	case len(r.Principals) > wire.MaxPrincipals:
		return fault.Field("subject.principals", "must be at most %d, are %d", wire.MaxPrincipals, len(r.Principals))
	case len(r.Attributes) > wire.MaxAttributes:
		return fault.Field("subject.attributes", "must be at most %d, are %d", wire.MaxAttributes, len(r.Attributes))
	}
	for id, cost := range r.Costs {
		if cost < 0 || cost > wire.MaxCost {
			return fault.Field(fmt.Sprintf("costs[%q]", id), "must be 0 to %d, is %d", wire.MaxCost, cost)
		}
	}
	if field, ok := r.badText(); ok {
		return fault.Field(field, "must be valid UTF-8")
	}
	return nil
}

// checkEncoded refuses a request that is too large.
func checkEncoded(b []byte) error {
	if len(b) > maxEncoded {
		return fault.Field("subject", "must be at most %d bytes encoded, is %d", maxEncoded, len(b))
	}
	return nil
}

// badText finds a value that is not UTF-8.
func (r *Request) badText() (field string, found bool) {
	switch {
	case !utf8.ValidString(r.Tenant):
		return "subject.tenant", true
	case !utf8.ValidString(r.Route):
		return "subject.route", true
	case !utf8.ValidString(r.Plan):
		return "subject.plan", true
	case !utf8.ValidString(r.Region):
		return "subject.region", true
	case !utf8.ValidString(r.RequestID):
		return "request_id", true
	}
	for i := range r.Principals {
		if !utf8.ValidString(r.Principals[i].Type) || !utf8.ValidString(r.Principals[i].ID) {
			return fmt.Sprintf("subject.principals[%d]", i), true
		}
	}
	for name, value := range r.Attributes {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Sprintf("subject.attributes[%q]", name), true
		}
	}
	for id := range r.Costs {
		if !utf8.ValidString(id) {
			return fmt.Sprintf("costs[%q]", id), true
		}
	}
	return "", false
}

// append encodes the request as a DecideRequest without its id. What comes from
// a map is in order of its keys, so that copies are equal.
func (r *Request) append(dst []byte) []byte {
	dst, start := wire.Open(dst, 1)
	dst = wire.Close(r.appendSubject(dst), start)
	switch {
	case r.Look:
		dst = append(dst, 2<<3, 0) // a present zero
	case r.Cost > 1:
		dst = wire.AppendUint(dst, 2, uint64(r.Cost))
	}
	dst = wire.AppendString(dst, 3, r.RequestID)
	dst = wire.AppendBool(dst, 5, r.StaleOK)
	dst = wire.AppendBool(dst, 7, r.Witness)
	if len(r.Costs) == 0 {
		return dst
	}
	for _, id := range slices.Sorted(maps.Keys(r.Costs)) {
		dst, start = wire.Open(dst, 6)
		dst = wire.AppendString(dst, 1, id)
		dst = wire.AppendUint(dst, 2, uint64(r.Costs[id]))
		dst = wire.Close(dst, start)
	}
	return dst
}

// appendSubject encodes who asks for what, as a Subject.
func (r *Request) appendSubject(dst []byte) []byte {
	dst = wire.AppendString(dst, 1, r.Tenant)
	for i := range r.Principals {
		dst = appendPair(dst, 2, r.Principals[i].Type, r.Principals[i].ID)
	}
	dst = wire.AppendString(dst, 3, r.Route)
	dst = wire.AppendString(dst, 4, r.Plan)
	dst = wire.AppendString(dst, 5, r.Region)
	if len(r.Attributes) == 1 {
		for name, value := range r.Attributes {
			dst = appendPair(dst, 6, name, value)
		}
	} else if len(r.Attributes) > 1 {
		for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
			dst = appendPair(dst, 6, name, r.Attributes[name])
		}
	}
	return dst
}

func appendPair(dst []byte, num int, first, second string) []byte {
	dst, start := wire.Open(dst, num)
	dst = wire.AppendString(dst, 1, first)
	dst = wire.AppendString(dst, 2, second)
	return wire.Close(dst, start)
}

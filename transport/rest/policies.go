package rest

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

// A policy is what a policy file says of it, as JSON; answers add its version.

// listPolicies answers GET /v1/policies.
func listPolicies(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	select {
	case c.h.listing <- struct{}{}:
		defer func() { <-c.h.listing }()
	default:
		return fault.New(fault.Busy, "%d lists of all policies are being made already", maxListings)
	}
	r, err := c.h.options.Policies.List(c.r.Context(), &pb.ListPoliciesRequest{})
	if err != nil {
		return err
	}
	if c.unchanged(r.GetVersion()) {
		return nil
	}
	set := new(policy.Set)
	if err := set.UnmarshalJSON(r.GetSetJson()); err != nil {
		return fault.New(fault.Internal, "%v", err)
	}
	c.out = strconv.AppendUint(append(c.out[:0], `{"version":`...), r.GetVersion(), 10)
	c.out = appendJSON(append(c.out, `,"home":`...), set.Home)
	c.out = appendText(c.out, "no_match", set.NoMatch.String())
	c.out = appendJSON(append(c.out, `,"route_classes":`...), append([]policy.RouteClass{}, set.RouteClasses...))
	c.out = append(c.out, `,"policies":[`...)
	for i, p := range set.Policies {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = p.AppendFile(c.out)
	}
	c.out = append(c.out, "]}\n"...)
	c.answer(http.StatusOK, typeJSON)
	return nil
}

// getPolicy answers GET /v1/policies/{id}.
func getPolicy(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	r, err := c.h.options.Policies.Get(c.r.Context(), &pb.GetPolicyRequest{Id: c.name})
	if err != nil {
		return err
	}
	if c.unchanged(r.GetVersion()) {
		return nil
	}
	if c.out, err = appendPolicy(c.out[:0], r.GetPolicyJson()); err != nil {
		return err
	}
	c.out = append(c.out, '\n')
	c.answer(http.StatusOK, typeJSON)
	return nil
}

// appendPolicy writes what the service says of a policy as a file says it.
func appendPolicy(dst, canonical []byte) ([]byte, error) {
	p := new(policy.Policy)
	if err := json.Unmarshal(canonical, p); err != nil {
		return dst, fault.New(fault.Internal, "%v", err)
	}
	return p.AppendFile(dst), nil
}

// putPolicy answers PUT /v1/policies/{id}.
func putPolicy(c *call) error {
	match, err := c.ifMatch(true)
	if err != nil {
		return err
	}
	who, err := c.author()
	if err != nil {
		return err
	}
	p, err := c.readPolicy()
	if err != nil {
		return err
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fault.New(fault.Internal, "%v", err)
	}
	r, err := c.h.options.Policies.Put(c.r.Context(), &pb.PutPolicyRequest{PolicyJson: body, IfMatch: match, Author: who})
	if err != nil {
		return err
	}
	c.w.Header()["Etag"] = []string{etag(r.GetVersion())}
	c.changed(r)
	return nil
}

// readPolicy reads the body as a policy. An id in it must be that of the path; a
// version is what a GET said, and If-Match says it to us.
func (c *call) readPolicy() (*policy.Policy, error) {
	s, err := c.body(maxPolicyBody)
	if err != nil {
		return nil, err
	}
	lines := []string{`"id":` + string(appendJSON(nil, c.name))}
	err = s.object("an object", func(name string) error {
		switch name {
		case "id":
			id, err := s.textValue()
			if err == nil && id != c.name {
				err = fault.Field("", "%s, want %s as in the path, or none", printable(id), printable(c.name))
			}
			return err
		case "version":
			_, err := s.whole(1<<63 - 1)
			return err
		}
		text, err := s.value(0)
		if err == nil {
			lines = append(lines, string(appendJSON(nil, name))+":"+text)
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	p, err := policy.ParseOne("http", []byte("{"+strings.Join(lines, ",\n")+"}"))
	var e *policy.ParseError
	if errors.As(err, &e) {
		return nil, fault.Field(e.Field, "%s", e.Reason)
	}
	return p, err
}

// deletePolicy answers DELETE /v1/policies/{id}.
func deletePolicy(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	match, err := c.ifMatch(false)
	if err != nil {
		return err
	}
	who, err := c.author()
	if err != nil {
		return err
	}
	r, err := c.h.options.Policies.Delete(c.r.Context(), &pb.DeletePolicyRequest{Id: c.name, IfMatch: match, Author: who})
	if err != nil {
		return err
	}
	c.changed(r)
	return nil
}

// changed answers a change.
func (c *call) changed(r *pb.PutResponse) {
	c.out = strconv.AppendBool(append(c.out[:0], `{"changed":`...), r.GetChanged())
	c.out = strconv.AppendUint(append(c.out, `,"version":`...), r.GetVersion(), 10)
	c.out = append(c.out, "}\n"...)
	c.answer(http.StatusOK, typeJSON)
}

// policyVersions answers GET /v1/policies/{id}/versions, newest first.
func policyVersions(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	r, err := c.h.options.Policies.History(c.r.Context(), &pb.PolicyHistoryRequest{Id: c.name})
	if err != nil {
		return err
	}
	c.out = append(c.out[:0], `{"versions":[`...)
	for i, v := range r.GetVersions() {
		if i > 0 {
			c.out = append(c.out, ',')
		}
		c.out = strconv.AppendUint(append(c.out, `{"version":`...), v.GetVersion(), 10)
		c.out = appendText(c.out, "action", v.GetAction())
		c.out = appendText(c.out, "who", v.GetWho())
		c.out = appendText(c.out, "when", v.GetWhen())
		c.out = append(c.out, `,"policy":`...)
		if len(v.GetPolicyJson()) == 0 {
			c.out = append(c.out, "null"...)
		} else if c.out, err = appendPolicy(c.out, v.GetPolicyJson()); err != nil {
			return err
		}
		c.out = append(c.out, '}')
	}
	c.out = append(c.out, "]}\n"...)
	c.answer(http.StatusOK, typeJSON)
	return nil
}

// maxAuthor is how long the name of who changes something may be, in bytes.
const maxAuthor = 256

// author is who the audit log will name: the header From, else the caller's address.
// Neither is proven: see docs/http.md.
func (c *call) author() (*pb.Author, error) {
	who, ok, err := c.header("From")
	switch {
	case err != nil:
		return nil, err
	case !ok:
		host, _, err := net.SplitHostPort(c.r.RemoteAddr)
		if err != nil {
			host = c.r.RemoteAddr
		}
		return &pb.Author{Who: "http " + host}, nil
	case who == "" || len(who) > maxAuthor || !isPrintable(who):
		return nil, fault.Field("From", "%s, want who you are, 1 … %d bytes of printable ASCII", printable(who), maxAuthor)
	}
	return &pb.Author{Who: who}, nil
}

// query reads the query, which may have only these names.
func (c *call) query(names ...string) (url.Values, error) {
	query, err := url.ParseQuery(c.r.URL.RawQuery)
	if err != nil {
		return nil, fault.Field("", "the query is malformed: %v", err)
	}
	for name, values := range query {
		known := false
		for _, n := range names {
			known = known || n == name
		}
		if !known {
			return nil, fault.Field(printable(name), "is no parameter of this, want %s", strings.Join(names, " or "))
		}
		if name != "key" && len(values) > 1 {
			return nil, fault.Field(name, "given %d times, want it once", len(values))
		}
	}
	return query, nil
}

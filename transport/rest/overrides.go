package rest

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// override is an override as JSON has it here: the times/per of policy.Override is a
// fraction to scale by, and its deadline a time that people read.
type override struct {
	Policy  string       `json:"policy"`
	Key     policy.Match `json:"key"`
	Amount  *uint64      `json:"amount,omitempty"`
	Burst   *uint64      `json:"burst,omitempty"`
	Times   uint64       `json:"times,omitempty"`
	Per     uint64       `json:"per,omitempty"`
	Until   string       `json:"until"`
	Version uint64       `json:"version"`
}

// listOverrides answers GET /v1/overrides.
func listOverrides(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	r, err := c.h.options.Policies.ListOverrides(c.r.Context(), &pb.ListOverridesRequest{})
	if err != nil {
		return err
	}
	var list []policy.Override
	if err := json.Unmarshal(r.GetOverridesJson(), &list); err != nil {
		return fault.New(fault.Internal, "%v", err)
	}
	out := make([]override, len(list))
	for i, o := range list {
		out[i] = override{o.Policy, o.Key, o.Amount, o.Burst, o.Times, o.Per, time.Unix(0, o.Until).UTC().Format(time.RFC3339Nano), o.Version}
	}
	c.out = appendJSON(append(c.out[:0], `{"overrides":`...), out)
	c.out = append(c.out, "}\n"...)
	c.answer(http.StatusOK, typeJSON)
	return nil
}

// setOverride answers PUT /v1/overrides.
func setOverride(c *call) error {
	who, err := c.author()
	if err != nil {
		return err
	}
	o, err := c.readOverride()
	if err != nil {
		return err
	}
	body, err := json.Marshal(o)
	if err != nil {
		return fault.New(fault.Internal, "%v", err)
	}
	r, err := c.h.options.Policies.SetOverride(c.r.Context(), &pb.SetOverrideRequest{OverrideJson: body, Author: who})
	if err != nil {
		return err
	}
	c.changed(r)
	return nil
}

func (c *call) readOverride() (*policy.Override, error) {
	s, err := c.body(maxPolicyBody)
	if err != nil {
		return nil, err
	}
	o, key := new(policy.Override), map[string]string{}
	const most = bucket.MaxAmount
	number := func(into **uint64) error {
		n, err := s.whole(most)
		*into = &n
		return err
	}
	err = s.object("an object", func(name string) (err error) {
		switch name {
		case "policy":
			o.Policy, err = s.textValue()
		case "key":
			err = s.object("an object of names of the policy's scope and values", func(name string) error {
				value, err := s.textValue()
				key[name] = value
				return err
			})
		case "amount":
			err = number(&o.Amount)
		case "burst":
			err = number(&o.Burst)
		case "times":
			o.Times, err = s.whole(most)
		case "per":
			o.Per, err = s.whole(most)
		case "until":
			o.Until, err = readDeadline(&s)
		default:
			err = fault.Field("", "is unknown, want policy, key, amount, burst, times, per or until")
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	o.Key = keyOf(key)
	switch {
	case o.Policy == "":
		return nil, fault.Field("policy", "missing, want the id of a policy")
	case len(o.Key) == 0:
		return nil, fault.Field("key", "missing, want whom it is for, such as {\"tenant\":\"acme\"}")
	case o.Until == 0:
		return nil, fault.Field("until", "missing, want a time such as 2026-01-02T15:04:05Z")
	}
	return o, nil
}

func keyOf(values map[string]string) policy.Match {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, name, value)
	}
	return policy.On(pairs...)
}

// readDeadline reads a time to come, in ns since 1970.
func readDeadline(s *scan) (int64, error) {
	text, err := s.textValue()
	if err != nil {
		return 0, err
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil || t.Year() > 2200:
		return 0, fault.Field("", "%s, want a time such as 2026-01-02T15:04:05Z", printable(text))
	case !t.After(time.Now()):
		return 0, fault.Field("", "%s, want a time to come", printable(text))
	}
	return t.UnixNano(), nil
}

// clearOverride answers DELETE /v1/overrides?policy=ID&key=NAME=VALUE.
func clearOverride(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	who, err := c.author()
	if err != nil {
		return err
	}
	query, err := c.query("policy", "key")
	if err != nil {
		return err
	}
	key := map[string]string{}
	for _, pair := range query["key"] {
		name, value, ok := strings.Cut(pair, "=")
		if _, twice := key[name]; !ok || name == "" || twice {
			return fault.Field("key", "%s, want NAME=VALUE with distinct names", printable(pair))
		}
		key[name] = value
	}
	if query.Get("policy") == "" || len(key) == 0 {
		return fault.Field("policy", "want ?policy=ID&key=NAME=VALUE, with a key for each name")
	}
	body, err := json.Marshal(policy.Override{Policy: query.Get("policy"), Key: keyOf(key)})
	if err != nil {
		return fault.New(fault.Internal, "%v", err)
	}
	r, err := c.h.options.Policies.ClearOverride(c.r.Context(), &pb.ClearOverrideRequest{OverrideJson: body, Author: who})
	if err != nil {
		return err
	}
	c.changed(r)
	return nil
}

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/client"
)

// subjectOptions are the flags that say who asks for what.
type subjectOptions struct {
	req                        client.Request
	principals, attributes     []string
	principalType, principalID string
}

func (o *subjectOptions) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.req.Tenant, "tenant", "", "tenant")
	f.StringArrayVar(&o.principals, "principal", nil, "who asks, `TYPE=ID`; may be given several times")
	f.StringVar(&o.principalType, "principal-type", "", "type of one principal, with --principal-id")
	f.StringVar(&o.principalID, "principal-id", "", "id of one principal, with --principal-type")
	f.StringVar(&o.req.Route, "route", "", "what is asked for, `METHOD:/path`")
	f.StringVar(&o.req.Plan, "plan", "", "plan of the tenant")
	f.StringVar(&o.req.Region, "region", "", "region")
	f.StringArrayVar(&o.attributes, "attr", nil, "free attribute, `NAME=VALUE`; may be given several times")
	f.StringVar(&o.req.RequestID, "request-id", "", "your own id of the request: copies with the same id are charged once")
}

// request puts together what the flags give in pieces.
func (o *subjectOptions) request() (client.Request, error) {
	r := o.req
	if (o.principalType == "") != (o.principalID == "") {
		return r, usageError{errors.New("--principal-type and --principal-id go together")}
	}
	if o.principalType != "" {
		r.Principals = append(r.Principals, client.Principal{Type: o.principalType, ID: o.principalID})
	}
	for _, p := range o.principals {
		kind, id, ok := strings.Cut(p, "=")
		if !ok || kind == "" {
			return r, usageError{fmt.Errorf("--principal %q: want TYPE=ID", p)}
		}
		r.Principals = append(r.Principals, client.Principal{Type: kind, ID: id})
	}
	var err error
	r.Attributes, err = pairs("--attr", o.attributes)
	return r, err
}

// pairs reads NAME=VALUE flags; nil if there are none.
func pairs(flag string, texts []string) (map[string]string, error) {
	var out map[string]string
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usageError{fmt.Errorf("%s %q: want NAME=VALUE", flag, text)}
		}
		if out == nil {
			out = make(map[string]string)
		}
		if _, twice := out[name]; twice {
			return nil, usageError{fmt.Errorf("%s %s is given twice", flag, name)}
		}
		out[name] = value
	}
	return out, nil
}

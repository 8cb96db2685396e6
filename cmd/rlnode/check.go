package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client"
)

type checkOptions struct {
	addrs                      []string
	req                        client.Request
	principals, attributes     []string
	principalType, principalID string
	cost                       int64
	timeout                    time.Duration
	output                     string
}

func checkCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Take from the limits of one request; exit code 3 if it is denied",
		Long: "check asks the cluster for one decision. --cost 0 looks without spending. It never degrades: an answer that the\n" +
			"cluster did not give is an error, exit code 1.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd.Context(), cmd.OutOrStdout(), &o) },
	}
	f := cmd.Flags()
	addrFlag(cmd, &o.addrs)
	f.StringVar(&o.req.Tenant, "tenant", "", "tenant")
	f.StringArrayVar(&o.principals, "principal", nil, "who asks, `TYPE=ID`; may be given several times")
	f.StringVar(&o.principalType, "principal-type", "", "type of one principal, with --principal-id")
	f.StringVar(&o.principalID, "principal-id", "", "id of one principal, with --principal-type")
	f.StringVar(&o.req.Route, "route", "", "what is asked for, `METHOD:/path`")
	f.StringVar(&o.req.Plan, "plan", "", "plan of the tenant")
	f.StringVar(&o.req.Region, "region", "", "region")
	f.StringArrayVar(&o.attributes, "attr", nil, "free attribute, `NAME=VALUE`; may be given several times")
	f.Int64Var(&o.cost, "cost", 1, "tokens to take; 0 looks")
	f.StringVar(&o.req.RequestID, "request-id", "", "your own id of the request: copies with the same id are charged once")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "how long to try")
	outputFlag(cmd, &o.output, "text")
	return cmd
}

func addrFlag(cmd *cobra.Command, addrs *[]string) {
	cmd.Flags().StringSliceVar(addrs, "addr", []string{"127.0.0.1:7600"}, "gRPC addresses of any nodes, `HOST:PORT,...`")
}

func outputFlag(cmd *cobra.Command, output *string, text string) {
	cmd.Flags().StringVarP(output, "output", "o", text, text+" or json")
}

func checkOutput(output, text string) error {
	if output != text && output != "json" {
		return usageError{fmt.Errorf("-o %q: want %s or json", output, text)}
	}
	return nil
}

// request fills in what the flags give in pieces.
func (o *checkOptions) request() (client.Request, error) {
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
	for _, a := range o.attributes {
		name, value, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return r, usageError{fmt.Errorf("--attr %q: want NAME=VALUE", a)}
		}
		if r.Attributes == nil {
			r.Attributes = make(map[string]string)
		}
		if _, twice := r.Attributes[name]; twice {
			return r, usageError{fmt.Errorf("--attr %s is given twice", name)}
		}
		r.Attributes[name] = value
	}
	r.Cost, r.Look = o.cost, o.cost == 0
	return r, nil
}

func check(ctx context.Context, out io.Writer, o *checkOptions) error {
	if err := checkOutput(o.output, "text"); err != nil {
		return err
	}
	if o.timeout <= 0 {
		return usageError{fmt.Errorf("--timeout %s: want more than 0", o.timeout)}
	}
	req, err := o.request()
	if err != nil {
		return err
	}
	c, err := client.New(o.addrs)
	if err != nil {
		return usageError{err}
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	d, err := c.Decide(ctx, req)
	if errors.Is(err, fault.InvalidArgument) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if err := printDecision(out, &d, o.output); err != nil {
		return err
	}
	if !d.Allowed {
		return exitCode(exitDenied)
	}
	return nil
}

// limitJSON is the answer of one limit as scripts read it.
type limitJSON struct {
	Allowed       bool   `json:"allowed"`
	Limit         uint64 `json:"limit"`
	Remaining     uint64 `json:"remaining"`
	ResetAfterNs  int64  `json:"reset_after_ns"`
	RetryAfterNs  int64  `json:"retry_after_ns"`
	DelayNs       int64  `json:"delay_ns"`
	PolicyID      string `json:"policy_id"`
	PolicyVersion uint64 `json:"policy_version"`
	Reason        string `json:"reason"`
	Degraded      bool   `json:"degraded"`
}

func toJSON(l *client.Answer) limitJSON {
	return limitJSON{
		Allowed: l.Allowed, Limit: l.Limit, Remaining: l.Remaining,
		ResetAfterNs: int64(l.ResetAfter), RetryAfterNs: int64(l.RetryAfter), DelayNs: int64(l.Delay),
		PolicyID: l.PolicyID, PolicyVersion: l.PolicyVersion, Reason: l.Reason,
	}
}

func printDecision(out io.Writer, d *client.Decision, output string) error {
	if output == "json" {
		v := struct {
			limitJSON
			Uncommitted bool        `json:"uncommitted"`
			Epoch       uint32      `json:"epoch"`
			Group       uint32      `json:"group"`
			Index       uint64      `json:"index"`
			Limits      []limitJSON `json:"limits"`
		}{limitJSON: toJSON(&d.Answer), Uncommitted: d.Uncommitted, Epoch: d.Epoch, Group: d.Group, Index: d.Index, Limits: []limitJSON{}}
		v.Degraded = d.Degraded
		for i := range d.Limits {
			v.Limits = append(v.Limits, toJSON(&d.Limits[i]))
		}
		return json.NewEncoder(out).Encode(v)
	}
	if d.PolicyID == "" {
		word := "allowed"
		if !d.Allowed {
			word = "denied"
		}
		_, err := fmt.Fprintf(out, "%s: no policy applies (no_match)\n", word)
		return err
	}
	for i := range d.Limits {
		if _, err := fmt.Fprintln(out, sentence(&d.Limits[i], d.Allowed)); err != nil {
			return err
		}
	}
	return nil
}

// sentence says one limit's answer in words; the request as a whole may be
// denied by another limit.
func sentence(l *client.Answer, allowed bool) string {
	head := fmt.Sprintf("%s %s (version %d): %d of %d left", verdict(l.Allowed, allowed), l.PolicyID, l.PolicyVersion, l.Remaining, l.Limit)
	switch {
	case l.Allowed:
		return fmt.Sprintf("%s, full again in %s", head, brief(l.ResetAfter))
	case l.RetryAfter == client.Never:
		return fmt.Sprintf("%s, no wait helps: %s", head, l.Reason)
	default:
		return fmt.Sprintf("%s, retry after %s", head, brief(l.RetryAfter))
	}
}

// brief rounds a wait up to what a person can use.
func brief(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d > time.Minute {
		unit = time.Second
	}
	return (d + unit - 1).Truncate(unit)
}

func verdict(limit, request bool) string {
	switch {
	case !limit:
		return "denied by"
	case !request:
		return "not taken from" // it would have passed; another limit denied
	default:
		return "allowed by"
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
)

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
	Shadow        bool   `json:"shadow,omitempty"`
	PermitID      string `json:"permit_id,omitempty"`
	FencingToken  uint64 `json:"fencing_token,omitempty"`
}

func toJSON(l *client.Answer) limitJSON {
	return limitJSON{
		Allowed: l.Allowed, Limit: l.Limit, Remaining: l.Remaining,
		ResetAfterNs: int64(l.ResetAfter), RetryAfterNs: int64(l.RetryAfter), DelayNs: int64(l.Delay),
		PolicyID: l.PolicyID, PolicyVersion: l.PolicyVersion, Reason: l.Reason,
		Shadow: l.Shadow, PermitID: l.PermitID, FencingToken: l.FencingToken,
	}
}

func limitsJSON(limits []client.Answer) []limitJSON {
	out := []limitJSON{}
	for i := range limits {
		out = append(out, toJSON(&limits[i]))
	}
	return out
}

// printDecision prints an answer, with what explained it if that was asked for.
func printDecision(out io.Writer, d *client.Decision, before *pb.ExplainResponse, output string) error {
	if output == "json" {
		v := struct {
			limitJSON
			Uncommitted bool         `json:"uncommitted"`
			Epoch       uint32       `json:"epoch"`
			Group       uint32       `json:"group"`
			Index       uint64       `json:"index"`
			Limits      []limitJSON  `json:"limits"`
			Explain     *explainJSON `json:"explain,omitempty"`
		}{limitJSON: toJSON(&d.Answer), Uncommitted: d.Uncommitted, Epoch: d.Epoch, Group: d.Group, Index: d.Index, Limits: limitsJSON(limitsOf(d))}
		v.Degraded = d.Degraded
		if before != nil {
			v.Explain = toExplainJSON(before, d)
		}
		return json.NewEncoder(out).Encode(v)
	}
	if err := printSentences(out, d); err != nil || before == nil {
		return err
	}
	return printExplanation(out, before, d)
}

// limitsOf is one answer per policy: a client leaves them out where the decision
// is the answer of the only one.
func limitsOf(d *client.Decision) []client.Answer {
	if len(d.Limits) == 0 && d.PolicyID != "" {
		return []client.Answer{d.Answer}
	}
	return d.Limits
}

func printSentences(out io.Writer, d *client.Decision) error {
	if d.PolicyID == "" {
		word := "allowed"
		if !d.Allowed {
			word = "denied"
		}
		which := "no policy applies"
		if len(d.Limits) > 0 {
			which = "only shadow policies apply"
		}
		if _, err := fmt.Fprintf(out, "%s: %s (no_match)\n", word, which); err != nil {
			return err
		}
	}
	for _, l := range limitsOf(d) {
		if _, err := fmt.Fprintln(out, sentence(&l, d.Allowed)); err != nil {
			return err
		}
	}
	return nil
}

// sentence says one limit's answer in words; the request as a whole may be
// denied by another limit.
func sentence(l *client.Answer, allowed bool) string {
	head := fmt.Sprintf("%s %s (version %d): %d of %d left", verdict(l, allowed), l.PolicyID, l.PolicyVersion, l.Remaining, l.Limit)
	switch {
	case l.PermitID != "":
		return fmt.Sprintf("%s, permit %s, fencing token %d", head, l.PermitID, l.FencingToken)
	case l.Allowed && l.Delay > 0:
		return fmt.Sprintf("%s, hold it for %s", head, brief(l.Delay))
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

// amount is a number of things in words.
func amount(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func verdict(l *client.Answer, request bool) string {
	switch {
	case l.Shadow && !l.Allowed:
		return "would be denied by" // a shadow policy
	case !l.Allowed:
		return "denied by"
	case !request:
		return "not taken from" // it would have passed; another limit denied
	case l.Shadow:
		return "counted by"
	default:
		return "allowed by"
	}
}

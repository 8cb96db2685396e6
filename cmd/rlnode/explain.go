package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"google.golang.org/grpc"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
)

// explain asks which policies the request falls under and what their buckets
// hold, before anything is taken.
func explain(ctx context.Context, addrs nodes, r *client.Request) (*pb.ExplainResponse, error) {
	cost := max(r.Cost, 1)
	if r.Look {
		cost = 0
	}
	q := &pb.DecideRequest{Subject: subjectMessage(r), Cost: &cost}
	for id, n := range r.Costs {
		q.Costs = append(q.Costs, &pb.PolicyCost{Policy: id, Cost: n})
	}
	return ask(ctx, addrs, reading, func(ctx context.Context, c *grpc.ClientConn) (*pb.ExplainResponse, error) {
		return pb.NewLimiterClient(c).Explain(ctx, q)
	})
}

func subjectMessage(r *client.Request) *pb.Subject {
	s := &pb.Subject{Tenant: r.Tenant, Route: r.Route, Plan: r.Plan, Region: r.Region}
	for _, p := range r.Principals {
		s.Principals = append(s.Principals, &pb.Principal{Type: p.Type, Id: p.ID})
	}
	for name, value := range r.Attributes {
		s.Attributes = append(s.Attributes, &pb.Attribute{Name: name, Value: value})
	}
	return s
}

// explainJSON is an explanation as scripts read it.
type explainJSON struct {
	Home     string                `json:"home"`
	HomeSlot uint32                `json:"home_slot"`
	Group    uint32                `json:"group"`
	Epoch    uint32                `json:"epoch"`
	Leader   string                `json:"leader"`
	Policies []explainedPolicyJSON `json:"policies"`
}

type explainedPolicyJSON struct {
	PolicyID string  `json:"policy_id"`
	Version  uint64  `json:"policy_version"`
	Applies  bool    `json:"applies"`
	Why      string  `json:"why"`
	Source   string  `json:"source,omitempty"`
	Mode     string  `json:"mode"`
	Override string  `json:"override,omitempty"`
	Slot     *uint32 `json:"slot,omitempty"` // this and what follows: only if it applies
	Group    *uint32 `json:"group,omitempty"`
	Cost     *uint64 `json:"cost,omitempty"`
	Before   *uint64 `json:"remaining_before,omitempty"`
	After    *uint64 `json:"remaining_after,omitempty"`
}

func toExplainJSON(x *pb.ExplainResponse, d *client.Decision) *explainJSON {
	out := &explainJSON{
		Home: x.GetHome(), HomeSlot: x.GetHomeSlot(), Group: x.GetGroup(), Epoch: x.GetEpoch(), Leader: x.GetLeader(),
		Policies: []explainedPolicyJSON{},
	}
	for _, p := range x.GetPolicies() {
		j := explainedPolicyJSON{
			PolicyID: p.GetPolicyId(), Version: p.GetVersion(), Applies: p.GetApplies(), Why: p.GetWhy(),
			Source: p.GetSource(), Mode: p.GetMode(), Override: p.GetOverride(),
		}
		if p.GetApplies() {
			slot, group, cost, before := p.GetSlot(), p.GetGroup(), p.GetCost(), p.GetNow().GetRemaining()
			j.Slot, j.Group, j.Cost, j.Before, j.After = &slot, &group, &cost, &before, after(d, p.GetPolicyId())
		}
		out.Policies = append(out.Policies, j)
	}
	return out
}

// after is what a policy's bucket held after the decision, nil if it had none of it.
func after(d *client.Decision, id string) *uint64 {
	for _, l := range limitsOf(d) {
		if l.PolicyID == id {
			return &l.Remaining
		}
	}
	return nil
}

func printExplanation(out io.Writer, x *pb.ExplainResponse, d *client.Decision) error {
	fmt.Fprintf(out, "\nhome %s: slot %d, group %d epoch %d, leader %s\n\n", x.GetHome(), x.GetHomeSlot(), x.GetGroup(), x.GetEpoch(), orNone(x.GetLeader()))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tVERSION\tMODE\tCOST\tBEFORE\tAFTER\tSLOT\tGROUP\tSOURCE\tWHY")
	for _, p := range x.GetPolicies() {
		why := strings.TrimPrefix(strings.TrimPrefix(p.GetWhy(), p.GetPolicyId()), " ("+p.GetSource()+")") // both have columns
		why = strings.TrimPrefix(why, ": ")
		if !p.GetApplies() {
			fmt.Fprintf(w, "%s\t%d\t%s\t-\t-\t-\t-\t-\t%s\t%s\n", p.GetPolicyId(), p.GetVersion(), p.GetMode(), orNone(p.GetSource()), why)
			continue
		}
		left := "-"
		if n := after(d, p.GetPolicyId()); n != nil {
			left = fmt.Sprint(*n)
		}
		if p.GetOverride() != "" {
			why += ", override of " + p.GetOverride()
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%d\t%s\t%d\t%d\t%s\t%s\n", p.GetPolicyId(), p.GetVersion(), p.GetMode(), p.GetCost(),
			p.GetNow().GetRemaining(), left, p.GetSlot(), p.GetGroup(), orNone(p.GetSource()), why)
	}
	return w.Flush()
}

package cluster

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/transport"
)

// policies answers what clients ask and change of the agreed policies. Every
// node has them; changes go through the control leader.
type policies struct{ n *Node }

// Policies is the part of the node that serves the agreed policies.
func (n *Node) Policies() transport.Policies { return &policies{n} }

func (p *policies) state() (*control.State, error) {
	s := p.n.control.State()
	if s.Policies == nil {
		return nil, fault.New(fault.NotReady, "node %s knows no cluster yet", p.n.self.name)
	}
	return s, nil
}

// change commits a command and tells the version of the set after it. It
// returns only when this node decides by the change too.
func (p *policies) change(ctx context.Context, c control.Command, version func(*control.State) uint64) (*pb.PutResponse, error) {
	s, err := p.state()
	if err != nil {
		return nil, err
	}
	index, err := p.n.proposeAt(ctx, c)
	if err != nil {
		return nil, err
	}
	for p.n.control.Applied() < index || p.n.view.Load().behind(p.n.control.State()) {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	now := p.n.control.State()
	return &pb.PutResponse{Changed: now.PolicyVersion != s.PolicyVersion, Version: version(now)}, nil
}

func setVersion(s *control.State) uint64 { return s.PolicyVersion }

func policyVersion(id string) func(*control.State) uint64 {
	return func(s *control.State) uint64 {
		if p, ok := s.Policies.Find(id); ok {
			return p.Version
		}
		return s.PolicyVersion
	}
}

func author(a *pb.Author, source string) control.Author {
	return control.Author{Who: a.GetWho(), When: time.Now().UTC().Format(time.RFC3339), Source: source}
}

func (p *policies) List(context.Context, *pb.ListPoliciesRequest) (*pb.ListPoliciesResponse, error) {
	s, err := p.state()
	if err != nil {
		return nil, err
	}
	return &pb.ListPoliciesResponse{SetJson: s.Policies.Encode(), Version: s.PolicyVersion}, nil
}

func (p *policies) Get(_ context.Context, r *pb.GetPolicyRequest) (*pb.GetPolicyResponse, error) {
	s, err := p.state()
	if err != nil {
		return nil, err
	}
	found, ok := s.Policies.Find(r.GetId())
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no policy %q", r.GetId())
	}
	body, err := json.Marshal(found)
	if err != nil {
		return nil, fault.New(fault.Internal, "%v", err)
	}
	return &pb.GetPolicyResponse{PolicyJson: body, Version: found.Version}, nil
}

func (p *policies) PutFile(ctx context.Context, r *pb.PutFileRequest) (*pb.PutResponse, error) {
	set, slips, err := parseFile(r)
	if err != nil {
		return nil, err
	}
	out, err := p.change(ctx, control.PutPolicies{
		Set: set, Prune: r.GetPrune(), IfMatch: r.IfMatch, By: author(r.GetAuthor(), r.GetName()),
	}, setVersion)
	if err != nil {
		return nil, err
	}
	out.Warnings = slips
	return out, nil
}

func parseFile(r *pb.PutFileRequest) (set *policy.Set, slips []string, err error) {
	set, warnings, err := policy.ParseWarn(r.GetName(), r.GetFile())
	if err != nil {
		return nil, nil, fault.Field("file", "%v", err)
	}
	for _, w := range warnings {
		slips = append(slips, w.Error())
	}
	return set, slips, nil
}

func (p *policies) Put(ctx context.Context, r *pb.PutPolicyRequest) (*pb.PutResponse, error) {
	one := new(policy.Policy)
	if err := json.Unmarshal(r.GetPolicyJson(), one); err != nil {
		return nil, fault.Field("policy_json", "%v", err)
	}
	return p.change(ctx, control.PutPolicy{Policy: one, IfMatch: r.IfMatch, By: author(r.GetAuthor(), "")}, policyVersion(one.ID))
}

func (p *policies) Delete(ctx context.Context, r *pb.DeletePolicyRequest) (*pb.PutResponse, error) {
	return p.change(ctx, control.DeletePolicy{ID: r.GetId(), IfMatch: r.IfMatch, By: author(r.GetAuthor(), "")}, setVersion)
}

func (p *policies) Rollback(ctx context.Context, r *pb.RollbackRequest) (*pb.PutResponse, error) {
	return p.change(ctx, control.Rollback{
		ID: r.GetId(), To: r.GetTo(), IfMatch: r.IfMatch, By: author(r.GetAuthor(), ""),
	}, policyVersion(r.GetId()))
}

func (p *policies) History(_ context.Context, r *pb.PolicyHistoryRequest) (*pb.PolicyHistoryResponse, error) {
	s, err := p.state()
	if err != nil {
		return nil, err
	}
	out := new(pb.PolicyHistoryResponse)
	for _, v := range s.History(r.GetId()) {
		line := &pb.PolicyVersion{Version: v.Version}
		if v.Policy != nil {
			if line.PolicyJson, err = json.Marshal(v.Policy); err != nil {
				return nil, fault.New(fault.Internal, "%v", err)
			}
		}
		if v.Made != nil {
			line.Who, line.When, line.Action = v.Made.Who, v.Made.When, string(v.Made.Action)
		}
		out.Versions = append(out.Versions, line)
	}
	if len(out.Versions) == 0 {
		return nil, fault.New(fault.NotFound, "no policy %q is known, nor was one of late", r.GetId())
	}
	return out, nil
}

func (p *policies) Diff(_ context.Context, r *pb.PutFileRequest) (*pb.DiffResponse, error) {
	s, err := p.state()
	if err != nil {
		return nil, err
	}
	set, _, err := parseFile(r)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(set.Omitted, "home") && !slices.Equal(set.Home, s.Policies.Home) {
		return nil, fault.Field("home", "%v, want %v: it is fixed when the cluster is made", set.Home, s.Policies.Home)
	}
	if err := policy.CheckPut(s.Policies, set, r.GetPrune()); err != nil {
		return nil, fault.Field("policies", "%v", err) // as the put would
	}
	changes := policy.Diff(s.Policies, set)
	if !r.GetPrune() {
		// Without prune a policy that the file does not have stays.
		changes = slices.DeleteFunc(changes, func(c policy.Change) bool { return c.Kind == policy.Removed })
	}
	body, err := json.Marshal(changes)
	if err != nil {
		return nil, fault.New(fault.Internal, "%v", err)
	}
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = c.String()
	}
	return &pb.DiffResponse{ChangesJson: body, Text: strings.Join(lines, "\n")}, nil
}

func (p *policies) Audit(_ context.Context, r *pb.AuditRequest) (*pb.AuditResponse, error) {
	s, err := p.state()
	if err != nil {
		return nil, err
	}
	limit := int(r.GetLimit())
	if limit == 0 {
		limit = 100
	}
	entries := slices.Clone(s.Audit[max(0, len(s.Audit)-limit):])
	slices.Reverse(entries)
	body, err := json.Marshal(entries)
	if err != nil {
		return nil, fault.New(fault.Internal, "%v", err)
	}
	return &pb.AuditResponse{EntriesJson: body}, nil
}

func (p *policies) SetOverride(ctx context.Context, r *pb.SetOverrideRequest) (*pb.PutResponse, error) {
	o := new(policy.Override)
	if err := json.Unmarshal(r.GetOverrideJson(), o); err != nil {
		return nil, fault.Field("override_json", "%v", err)
	}
	return p.change(ctx, control.SetOverride{Override: o, By: author(r.GetAuthor(), "")}, setVersion)
}

func (p *policies) ListOverrides(context.Context, *pb.ListOverridesRequest) (*pb.ListOverridesResponse, error) {
	s, err := p.state()
	if err != nil {
		return nil, err
	}
	list := s.Policies.Overrides
	if list == nil {
		list = []*policy.Override{}
	}
	body, err := json.Marshal(list)
	if err != nil {
		return nil, fault.New(fault.Internal, "%v", err)
	}
	return &pb.ListOverridesResponse{OverridesJson: body}, nil
}

func (p *policies) ClearOverride(ctx context.Context, r *pb.ClearOverrideRequest) (*pb.PutResponse, error) {
	o := new(policy.Override)
	if err := json.Unmarshal(r.GetOverrideJson(), o); err != nil {
		return nil, fault.Field("override_json", "%v", err)
	}
	return p.change(ctx, control.ClearOverride{Policy: o.Policy, Key: o.Key, By: author(r.GetAuthor(), "")}, setVersion)
}

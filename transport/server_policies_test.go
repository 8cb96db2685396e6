package transport_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
	"github.com/ringlimit/ringlimit/transport"
)

// policies is a Policies that says which method was called, by version.
type policies struct {
	file *pb.PutFileRequest // the last that came
	hold chan struct{}      // not nil: PutFile waits for it
}

func (*policies) List(context.Context, *pb.ListPoliciesRequest) (*pb.ListPoliciesResponse, error) {
	return &pb.ListPoliciesResponse{Version: 1, SetJson: bytes.Repeat([]byte("x"), 3<<20)}, nil
}

func (*policies) Get(_ context.Context, r *pb.GetPolicyRequest) (*pb.GetPolicyResponse, error) {
	return nil, fault.New(fault.NotFound, "no policy %q", r.GetId())
}

func (p *policies) PutFile(ctx context.Context, r *pb.PutFileRequest) (*pb.PutResponse, error) {
	p.file = r
	if p.hold != nil {
		select {
		case <-p.hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &pb.PutResponse{Version: 3}, nil
}

func (*policies) Put(context.Context, *pb.PutPolicyRequest) (*pb.PutResponse, error) {
	return nil, fault.New(fault.PreconditionFailed, "version 812 is newer than 811")
}

func (*policies) Delete(context.Context, *pb.DeletePolicyRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{Version: 5}, nil
}

func (*policies) History(context.Context, *pb.PolicyHistoryRequest) (*pb.PolicyHistoryResponse, error) {
	return &pb.PolicyHistoryResponse{Versions: []*pb.PolicyVersion{{Version: 6}}}, nil
}

func (*policies) Rollback(context.Context, *pb.RollbackRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{Version: 7}, nil
}

func (p *policies) Diff(_ context.Context, r *pb.PutFileRequest) (*pb.DiffResponse, error) {
	p.file = r
	return &pb.DiffResponse{Text: "8"}, nil
}

func (*policies) Audit(context.Context, *pb.AuditRequest) (*pb.AuditResponse, error) {
	return &pb.AuditResponse{EntriesJson: []byte("9")}, nil
}

func (*policies) SetOverride(context.Context, *pb.SetOverrideRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{Version: 10}, nil
}

func (*policies) ListOverrides(context.Context, *pb.ListOverridesRequest) (*pb.ListOverridesResponse, error) {
	return &pb.ListOverridesResponse{OverridesJson: []byte("11")}, nil
}

func (*policies) ClearOverride(context.Context, *pb.ClearOverrideRequest) (*pb.PutResponse, error) {
	return &pb.PutResponse{Version: 12}, nil
}

func TestEveryMethodOfPoliciesArrives(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		c := pb.NewPoliciesClient(s.conn)
		ctx := t.Context()
		want := func(name string, ok bool, err error) {
			t.Helper()
			if !ok || err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		list, err := c.List(ctx, nil)
		want("List", list.GetVersion() == 1, err)
		if _, err := c.Get(ctx, &pb.GetPolicyRequest{Id: "p"}); !errors.Is(fault.FromStatus(err), fault.NotFound) {
			t.Errorf("Get: %v", err)
		}
		if _, err := c.Put(ctx, &pb.PutPolicyRequest{}); !errors.Is(fault.FromStatus(err), fault.PreconditionFailed) {
			t.Errorf("Put: %v", err)
		}
		put, err := c.Delete(ctx, nil)
		want("Delete", put.GetVersion() == 5, err)
		history, err := c.History(ctx, nil)
		want("History", history.GetVersions()[0].GetVersion() == 6, err)
		put, err = c.Rollback(ctx, nil)
		want("Rollback", put.GetVersion() == 7, err)
		audit, err := c.Audit(ctx, nil)
		want("Audit", string(audit.GetEntriesJson()) == "9", err)
		put, err = c.SetOverride(ctx, nil)
		want("SetOverride", put.GetVersion() == 10, err)
		overrides, err := c.ListOverrides(ctx, nil)
		want("ListOverrides", string(overrides.GetOverridesJson()) == "11", err)
		put, err = c.ClearOverride(ctx, nil)
		want("ClearOverride", put.GetVersion() == 12, err)
	})
}

// sendFile sends a file in pieces of a size and returns the answer to PutFile.
func (s *served) sendFile(first *pb.PutFileRequest, file []byte, size int) (*pb.PutResponse, error) {
	g, err := pb.NewPoliciesClient(s.conn).PutFile(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	next := proto.Clone(first).(*pb.PutFileRequest)
	for len(file) > 0 {
		n := min(size, len(file))
		next.File = file[:n]
		if err := g.Send(next); err != nil {
			break // CloseAndRecv says why
		}
		next, file = new(pb.PutFileRequest), file[n:]
	}
	r, err := g.CloseAndRecv()
	return r, fault.FromStatus(err)
}

func TestAFileArrivesWholeFromPieces(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		file := bytes.Repeat([]byte("0123456789abcdef"), wire.MaxFile/16)
		match := uint64(811)
		first := &pb.PutFileRequest{Name: "p.yaml", Prune: true, IfMatch: &match, Author: &pb.Author{Who: "me"}}
		r, err := s.sendFile(first, file, 1<<20-100)
		if err != nil || r.GetVersion() != 3 {
			t.Fatalf("got %v, %v", r, err)
		}
		first.File = file
		if !proto.Equal(s.b.policies.file, first) {
			t.Error("another file arrived")
		}
		if _, err := s.sendFile(first, append(file, 'x'), 1<<20-100); !errors.Is(err, fault.InvalidArgument) || !strings.Contains(err.Error(), "more than 134217728 bytes") {
			t.Errorf("one byte too many: %v", err)
		}
		if _, err := s.sendFile(first, file, 1<<20); !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("a piece that is too large: %v", err)
		}
		if _, err := s.sendFile(first, nil, 1); !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("no message: %v", err)
		}
		d, err := pb.NewPoliciesClient(s.conn).Diff(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = d.Send(&pb.PutFileRequest{File: []byte("policies: []")})
		if r, err := d.CloseAndRecv(); err != nil || r.GetText() != "8" || string(s.b.policies.file.GetFile()) != "policies: []" {
			t.Errorf("Diff: %v, %v", r, err)
		}
	})
}

func TestFewFilesAreReadAtOnce(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		c := pb.NewPoliciesClient(s.conn)
		var open []pb.Policies_PutFileClient
		for range 2 {
			g, err := c.PutFile(t.Context()) // begun, and nothing sent
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, g)
		}
		synctest.Wait()
		if _, err := s.sendFile(&pb.PutFileRequest{}, []byte("x"), 1); !errors.Is(err, fault.Busy) {
			t.Errorf("one too many: %v", err)
		}
		began := time.Now()
		for _, g := range open {
			if err := fault.FromStatus(g.RecvMsg(new(pb.PutResponse))); !errors.Is(err, fault.Deadline) || time.Since(began) != time.Minute {
				t.Errorf("one that dawdles: %v after %v", err, time.Since(began))
			}
		}
		if _, err := s.sendFile(&pb.PutFileRequest{}, []byte("x"), 1); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestRefundsAndPermitsAreChecked(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		many := &pb.Subject{Principals: make([]*pb.Principal, 9), Attributes: make([]*pb.Attribute, 17)}
		for i := range many.Principals {
			many.Principals[i] = &pb.Principal{}
		}
		for i := range many.Attributes {
			many.Attributes[i] = &pb.Attribute{}
		}
		long := strings.Repeat("x", 257)
		for _, c := range []struct {
			field string
			r     *pb.RefundRequest
		}{
			{"request_id", &pb.RefundRequest{}},
			{"request_id", &pb.RefundRequest{RequestId: long[:65]}},
			{"cost", &pb.RefundRequest{RequestId: "i", Cost: -1}},
			{"cost", &pb.RefundRequest{RequestId: "i", Cost: 1e9 + 1}},
			{"subject.principals", &pb.RefundRequest{RequestId: "i", Subject: many}},
			{"sent.sequence", &pb.RefundRequest{RequestId: "i", Sent: &pb.Sent{Session: 1}}},
		} {
			_, err := s.Refund(t.Context(), c.r)
			wantField(t, fault.FromStatus(err), c.field)
		}
		for _, c := range []struct {
			field string
			r     *pb.PermitRequest
		}{
			{"permit_id", &pb.PermitRequest{}},
			{"permit_id", &pb.PermitRequest{PermitId: long}},
			{"subject.attributes", &pb.PermitRequest{PermitId: "p", Subject: &pb.Subject{Attributes: many.Attributes}}},
		} {
			_, err := s.Release(t.Context(), c.r)
			wantField(t, fault.FromStatus(err), c.field)
			_, err = s.Renew(t.Context(), c.r)
			wantField(t, fault.FromStatus(err), c.field)
		}
		r, err := s.Refund(t.Context(), &pb.RefundRequest{RequestId: "i", Cost: 1e9})
		if err != nil || !r.GetRefunded() {
			t.Errorf("Refund: %v, %v", r, err)
		}
		p, err := s.Renew(t.Context(), &pb.PermitRequest{PermitId: "p"})
		if err != nil || p.GetExpiresAfterNs() != 1 {
			t.Errorf("Renew: %v, %v", p, err)
		}
		if p, err = s.Release(t.Context(), &pb.PermitRequest{PermitId: "p"}); err != nil || !p.GetHeld() {
			t.Errorf("Release: %v, %v", p, err)
		}
	})
}

func TestExplainTakesWhatDecideTakes(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		for field, bad := range badInputs(t) {
			wantField(t, s.raw(pb.Limiter_Explain_FullMethodName, bad), field)
		}
		if r, err := s.Explain(t.Context(), requests(1)[0]); err != nil || r.GetHome() != "acme" {
			t.Errorf("got %v, %v", r, err)
		}
	})
}

package transport

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// Policies is the part of a node that tells and changes what the cluster has
// agreed on. Its methods are those of the service, under the rules of Backend; a
// file arrives whole, at most wire.MaxFile bytes of it.
type Policies interface {
	List(ctx context.Context, r *pb.ListPoliciesRequest) (*pb.ListPoliciesResponse, error)
	Get(ctx context.Context, r *pb.GetPolicyRequest) (*pb.GetPolicyResponse, error)
	PutFile(ctx context.Context, r *pb.PutFileRequest) (*pb.PutResponse, error)
	Put(ctx context.Context, r *pb.PutPolicyRequest) (*pb.PutResponse, error)
	Delete(ctx context.Context, r *pb.DeletePolicyRequest) (*pb.PutResponse, error)
	History(ctx context.Context, r *pb.PolicyHistoryRequest) (*pb.PolicyHistoryResponse, error)
	Rollback(ctx context.Context, r *pb.RollbackRequest) (*pb.PutResponse, error)
	Diff(ctx context.Context, r *pb.PutFileRequest) (*pb.DiffResponse, error)
	Audit(ctx context.Context, r *pb.AuditRequest) (*pb.AuditResponse, error)
	SetOverride(ctx context.Context, r *pb.SetOverrideRequest) (*pb.PutResponse, error)
	ListOverrides(ctx context.Context, r *pb.ListOverridesRequest) (*pb.ListOverridesResponse, error)
	ClearOverride(ctx context.Context, r *pb.ClearOverrideRequest) (*pb.PutResponse, error)
}

// What changes of policies may take. Files are read by few callers at a time,
// because a server's memory is bounded by what it reads at once.
const (
	policyTimeout = time.Minute // of a call whose caller names no deadline, and its upper bound
	maxUploads    = 2           // files being read or judged
)

func policiesDesc() *grpc.ServiceDesc {
	d := pb.Policies_ServiceDesc
	d.HandlerType = (*any)(nil)
	d.Methods = []grpc.MethodDesc{
		policyMethod(pb.Policies_List_FullMethodName, "List", Policies.List),
		policyMethod(pb.Policies_Get_FullMethodName, "Get", Policies.Get),
		policyMethod(pb.Policies_Put_FullMethodName, "Put", Policies.Put),
		policyMethod(pb.Policies_Delete_FullMethodName, "Delete", Policies.Delete),
		policyMethod(pb.Policies_History_FullMethodName, "History", Policies.History),
		policyMethod(pb.Policies_Rollback_FullMethodName, "Rollback", Policies.Rollback),
		policyMethod(pb.Policies_Audit_FullMethodName, "Audit", Policies.Audit),
		policyMethod(pb.Policies_SetOverride_FullMethodName, "SetOverride", Policies.SetOverride),
		policyMethod(pb.Policies_ListOverrides_FullMethodName, "ListOverrides", Policies.ListOverrides),
		policyMethod(pb.Policies_ClearOverride_FullMethodName, "ClearOverride", Policies.ClearOverride),
	}
	d.Streams = []grpc.StreamDesc{upload("PutFile", Policies.PutFile), upload("Diff", Policies.Diff)}
	return &d
}

// policyMethod is a unary method of Policies.
func policyMethod[Req, Resp any](full, name string, f func(Policies, context.Context, *Req) (*Resp, error)) grpc.MethodDesc {
	return method(full, name, func(s *Server, ctx context.Context, r *Req) (*Resp, error) {
		return bounded(ctx, s, policyTimeout, func(ctx context.Context) (*Resp, error) {
			return f(s.backend.Policies(), ctx, r)
		})
	})
}

// upload is a method that takes a file in pieces. That keeps the bound on one
// message small for all methods alike: grpc knows no bound for a single one.
func upload[Resp any](name string, f func(Policies, context.Context, *pb.PutFileRequest) (*Resp, error)) grpc.StreamDesc {
	return grpc.StreamDesc{StreamName: name, ClientStreams: true, Handler: func(srv any, g grpc.ServerStream) error {
		s := srv.(*Server)
		select {
		case s.uploads <- struct{}{}:
			defer func() { <-s.uploads }()
		default:
			return fault.New(fault.Busy, "%d policy files are being read already", maxUploads)
		}
		out, err := bounded(g.Context(), s, policyTimeout, func(ctx context.Context) (*Resp, error) {
			r, err := s.receiveInTime(ctx, g)
			if err != nil {
				return nil, err
			}
			return f(s.backend.Policies(), ctx, r)
		})
		if err != nil {
			return err
		}
		return g.SendMsg(out)
	}}
}

// receiveInTime gives a caller up that dawdles. The reader ends with the
// stream, soon after the handler has returned.
func (s *Server) receiveInTime(ctx context.Context, g grpc.ServerStream) (*pb.PutFileRequest, error) {
	type received struct {
		file *pb.PutFileRequest
		err  error
	}
	done := make(chan received, 1)
	s.streams.Go(func() {
		r, err := receiveFile(g)
		done <- received{r, err}
	})
	select {
	case r := <-done:
		return r.file, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// receiveFile puts the pieces of a file together.
func receiveFile(g grpc.ServerStream) (*pb.PutFileRequest, error) {
	var whole *pb.PutFileRequest
	var raw wire.Raw
	for {
		err := g.RecvMsg(&raw)
		switch {
		case errors.Is(err, io.EOF) && whole == nil:
			return nil, fault.Field("file", "no message came, want at least one")
		case errors.Is(err, io.EOF):
			return whole, nil
		case err != nil:
			return nil, err
		}
		if err := raw.Check(); err != nil {
			return nil, err
		}
		piece := new(pb.PutFileRequest)
		if err := proto.Unmarshal(raw.B, piece); err != nil {
			return nil, fault.New(fault.InvalidArgument, "malformed message: %v", err)
		}
		if whole == nil {
			whole = piece
		} else {
			whole.File = append(whole.File, piece.File...)
		}
		if len(whole.File) > wire.MaxFile {
			return nil, fault.Field("file", "more than %d bytes", wire.MaxFile)
		}
	}
}

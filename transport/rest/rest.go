// Package rest is HTTP and JSON for callers of a node: thin handlers, written by
// hand, over the service that the gRPC server serves too, so that a decision is the
// same whoever carries it.
//
// A body is read strictly: what is unknown, twice, of another type or too long is
// refused, with the field, and nothing is charged. Errors are problem documents
// (RFC 9457) with the codes of package fault. docs/openapi.yaml has every
// operation, docs/http.md teaches them.
package rest

import (
	"context"
	"log/slog"
	"net/http"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// Service is what decides: the gRPC server is one. Its methods are called by many
// goroutines at once; errors should be of a fault kind, others are INTERNAL.
type Service interface {
	// Decide answers the requests of q, which have passed wire.CheckDecide, and the bad
	// ones: exactly one result each, in order. q is the callee's until it returns, no
	// longer; strings in it may be kept.
	Decide(ctx context.Context, q *wire.Requests) []*pb.Result
	Refund(ctx context.Context, r *pb.RefundRequest) (*pb.RefundResponse, error)
	Release(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error)
	Renew(ctx context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error)
	Status(ctx context.Context, r *pb.StatusRequest) (*pb.StatusResponse, error)
}

// Policies is what tells and changes the policies, under the rules of Service.
type Policies interface {
	List(ctx context.Context, r *pb.ListPoliciesRequest) (*pb.ListPoliciesResponse, error)
	Get(ctx context.Context, r *pb.GetPolicyRequest) (*pb.GetPolicyResponse, error)
	Put(ctx context.Context, r *pb.PutPolicyRequest) (*pb.PutResponse, error)
	Delete(ctx context.Context, r *pb.DeletePolicyRequest) (*pb.PutResponse, error)
	History(ctx context.Context, r *pb.PolicyHistoryRequest) (*pb.PolicyHistoryResponse, error)
	SetOverride(ctx context.Context, r *pb.SetOverrideRequest) (*pb.PutResponse, error)
	ListOverrides(ctx context.Context, r *pb.ListOverridesRequest) (*pb.ListOverridesResponse, error)
	ClearOverride(ctx context.Context, r *pb.ClearOverrideRequest) (*pb.PutResponse, error)
}

// Options are what a node adds. All but Logger must be set.
type Options struct {
	Service  Service
	Policies Policies
	Ready    func() (ready bool, why string) // what /readyz says
	Metrics  http.Handler                    // what /metrics answers
	Logger   *slog.Logger                    // nil: slog.Default
}

// Handler serves all paths of a node: those it does not know are 404. Give the
// server around it ReadTimeout and WriteTimeout (see maxPatience): they are what
// ends a body that comes slowly, and a reader that does not read.
type Handler struct {
	options   Options
	resources []*resource
	fixed     map[string]*resource // those without a name in their path, by it
	listing   chan struct{}        // one for each list of all policies being written; full: no more
}

// maxListings bounds the lists of all policies being made at once: each is tens of
// MB where there are 100,000 policies.
const maxListings = 2

// New returns a handler for o.
func New(o Options) *Handler {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	h := &Handler{options: o, fixed: map[string]*resource{}, listing: make(chan struct{}, maxListings)}
	for _, r := range h.routes() {
		h.add(r)
	}
	return h
}

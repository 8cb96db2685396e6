package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// later scripts what a fake node answers to unary calls.
type later struct {
	refunds  []*pb.RefundRequest
	permits  []*pb.PermitRequest
	failures []error // of the first calls
	refund   func(*pb.RefundRequest)
}

func (l *later) next() error {
	if len(l.failures) == 0 {
		return nil
	}
	err := l.failures[0]
	l.failures = l.failures[1:]
	return fault.ToStatus(err)
}

func (n *fakeNode) Refund(ctx context.Context, r *pb.RefundRequest) (*pb.RefundResponse, error) {
	if err := n.gate(ctx); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.later.refunds = append(n.later.refunds, r)
	if err := n.later.next(); err != nil {
		return nil, err
	}
	if n.later.refund != nil {
		n.later.refund(r)
	}
	return &pb.RefundResponse{Refunded: true, Limits: []*pb.LimitDecision{{PolicyId: "p", Remaining: 10, Limit: 10}}}, nil
}

func (n *fakeNode) permit(r *pb.PermitRequest, left time.Duration) (*pb.PermitResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.later.permits = append(n.later.permits, r)
	if err := n.later.next(); err != nil {
		return nil, err
	}
	return &pb.PermitResponse{Held: r.PermitId == "mine", ExpiresAfterNs: int64(left)}, nil
}

func (n *fakeNode) Release(_ context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	return n.permit(r, 0)
}

func (n *fakeNode) Renew(_ context.Context, r *pb.PermitRequest) (*pb.PermitResponse, error) {
	return n.permit(r, time.Minute)
}

var paid = Request{Tenant: "acme", Principals: []Principal{{"user", "u"}}, Attributes: map[string]string{"a": "b"}, RequestID: "mine"}

func TestRefundIsRetriedAndFollowsTheLeader(t *testing.T) {
	bubble(t, three, func(t *testing.T, f *fakeCluster, c *Client) {
		a, b := f.nodes["a"], f.nodes["b"]
		a.later.failures = []error{fault.New(fault.OutcomeUnknown, "leadership lost"), fault.Leader(&pb.LeaderHint{Grpc: "b"})}
		for _, n := range f.nodes {
			if n != a {
				n.later.failures = []error{fault.New(fault.NoLeader, "electing")}
			}
		}
		refunded, limits, err := c.Refund(t.Context(), paid, 3)
		if err != nil || !refunded || len(limits) != 1 || limits[0].PolicyID != "p" || limits[0].Remaining != 10 {
			t.Fatalf("got %v, %+v, %v", refunded, limits, err)
		}
		if len(a.later.refunds) == 0 {
			t.Error("the leader was not asked first")
		}
		r := append(a.later.refunds, b.later.refunds...)[0]
		if r.RequestId != "mine" || r.Cost != 3 || r.Subject.Tenant != "acme" || r.Subject.Principals[0].Id != "u" || r.Subject.Attributes[0].Value != "b" {
			t.Errorf("asked for %v", r)
		}
	})
}

func TestPermitsAreReleasedAndRenewed(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		if held, err := c.Release(t.Context(), paid, "mine"); err != nil || !held {
			t.Errorf("Release: %v, %v", held, err)
		}
		if left, held, err := c.Renew(t.Context(), paid, "mine"); err != nil || !held || left != time.Minute {
			t.Errorf("Renew: %v, %v, %v", left, held, err)
		}
		if held, err := c.Release(t.Context(), paid, "another"); err != nil || held {
			t.Errorf("another's: %v, %v", held, err)
		}
		for _, r := range f.nodes["a"].later.permits {
			if r.Subject.Tenant != "acme" {
				t.Errorf("asked for %v", r)
			}
		}
	})
}

func TestLaterCallsEndAtTheirDeadline(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].hang()
		began := time.Now()
		_, _, err := c.Refund(t.Context(), paid, 0) // no deadline: 2 s
		if !errors.Is(err, fault.Deadline) || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if _, _, err = c.Refund(ctx, paid, 0); !errors.Is(err, fault.Deadline) {
			t.Errorf("got %v", err)
		}
	})
}

func TestCloseEndsLaterCalls(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		f.nodes["a"].hang()
		done := make(chan error, 1)
		go func() {
			_, _, err := c.Refund(t.Context(), paid, 0)
			done <- err
		}()
		synctest.Wait()
		c.Close()
		if err := <-done; !errors.Is(err, fault.OutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBadLaterCallsAreNotSent(t *testing.T) {
	bubble(t, one, func(t *testing.T, f *fakeCluster, c *Client) {
		for field, call := range map[string]func() error{
			"request_id":     func() error { _, _, err := c.Refund(t.Context(), acme, 0); return err },
			"cost":           func() error { _, _, err := c.Refund(t.Context(), paid, -1); return err },
			"permit_id":      func() error { _, err := c.Release(t.Context(), acme, ""); return err },
			"subject.tenant": func() error { _, _, err := c.Renew(t.Context(), Request{Tenant: "\xff"}, "p"); return err },
		} {
			var e *fault.Error
			if err := call(); !errors.As(err, &e) || e.Kind != fault.InvalidArgument || e.Field != field {
				t.Errorf("%s: got %v", field, err)
			}
		}
		f.nodes["a"].later.failures = []error{fault.New(fault.Internal, "so it is")}
		if _, err := c.Release(t.Context(), paid, "mine"); !errors.Is(err, fault.Internal) {
			t.Errorf("an error that no retry cures: %v", err)
		}
	})
}

func TestDecisionTellsPermitAndShadow(t *testing.T) {
	var d Decision
	d.set(&pb.Decision{Allowed: true, PermitId: "p1", FencingToken: 7, Limits: []*pb.LimitDecision{{PermitId: "p1", FencingToken: 7}, {Shadow: true}}})
	if d.PermitID != "p1" || d.FencingToken != 7 || d.Limits[0].PermitID != "p1" || d.Limits[0].FencingToken != 7 || !d.Limits[1].Shadow || d.Limits[0].Shadow {
		t.Errorf("got %+v", d)
	}
}

package fault

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

var hint = &pb.LeaderHint{Group: 3, Epoch: 2, Node: "b", Grpc: "10.0.0.2:7600"}

// TestEveryCodeHasOneKind holds the table to the contract: a code of the .proto
// without a kind would arrive as INTERNAL.
func TestEveryCodeHasOneKind(t *testing.T) {
	seen := map[pb.Code]*Kind{}
	for _, k := range kinds {
		if other := seen[k.code]; other != nil {
			t.Errorf("%v is both %q and %q", k.code, k, other)
		}
		seen[k.code] = k
	}
	for number, name := range pb.Code_name {
		if k := seen[pb.Code(number)]; (k == nil) != (number == 0) {
			t.Errorf("%s has kind %v", name, k)
		}
	}
}

func TestKindsSurviveBothWires(t *testing.T) {
	for _, k := range kinds {
		want := &Error{Kind: k, Message: "group 3: so it is"}
		switch k {
		case InvalidArgument:
			want.Field = "requests[3].subject.tenant"
		case NotLeader:
			want.Leader = hint
		}
		wrapped := fmt.Errorf("propose: %w", want)
		for name, got := range map[string]error{
			"result": FromProto(ToProto(wrapped)),
			"status": FromStatus(ToStatus(wrapped)),
			"bare":   FromProto(ToProto(k)),
		} {
			if !errors.Is(got, k) {
				t.Errorf("%v over %s became %v", k, name, got)
			}
			var e *Error
			if !errors.As(got, &e) {
				t.Errorf("%v over %s has no particulars", k, name)
			} else if name != "bare" && (e.Message != want.Message || e.Field != want.Field || !proto.Equal(e.Leader, want.Leader)) {
				t.Errorf("%v over %s became %+v", k, name, e)
			}
			for _, other := range kinds {
				if other != k && errors.Is(got, other) {
					t.Errorf("%v over %s is also %v", k, name, other)
				}
			}
		}
		if code := status.Code(ToStatus(want)); code != k.grpc {
			t.Errorf("%v has status %v, want %v", k, code, k.grpc)
		}
	}
}

func TestErrorsOfNoKind(t *testing.T) {
	for _, c := range []struct {
		err  error
		want *Kind
	}{
		{errors.New("disk on fire"), Internal},
		{context.DeadlineExceeded, Deadline},
		{fmt.Errorf("wait: %w", context.Canceled), Deadline},
		{fmt.Errorf("call: %w", Busy), Busy},
	} {
		if got := FromProto(ToProto(c.err)); !errors.Is(got, c.want) {
			t.Errorf("%v became %v, want %v", c.err, got, c.want)
		}
		if got := FromStatus(ToStatus(c.err)); !errors.Is(got, c.want) {
			t.Errorf("%v over a status became %v, want %v", c.err, got, c.want)
		}
	}
	if ToProto(nil) != nil || FromProto(nil) != nil || ToStatus(nil) != nil || FromStatus(nil) != nil {
		t.Error("nil became an error")
	}
	if got := FromProto(&pb.Error{Code: 9999, Message: "from the future"}); !errors.Is(got, Internal) {
		t.Errorf("an unknown code became %v", got)
	}
}

// TestForeignStatuses are those of proxies and of grpc itself.
func TestForeignStatuses(t *testing.T) {
	for _, c := range []struct {
		code codes.Code
		want *Kind
	}{
		{codes.Unavailable, OutcomeUnknown},
		{codes.Canceled, OutcomeUnknown},
		{codes.Aborted, OutcomeUnknown},
		{codes.Unknown, OutcomeUnknown},
		{codes.DeadlineExceeded, Deadline},
		{codes.InvalidArgument, InvalidArgument},
		{codes.ResourceExhausted, OutcomeUnknown},
		{codes.Unimplemented, Internal},
		{codes.Internal, Internal},
	} {
		if got := FromStatus(status.Error(c.code, "from elsewhere")); !errors.Is(got, c.want) {
			t.Errorf("%v became %v, want %v", c.code, got, c.want)
		}
	}
	for text, want := range map[string]*Kind{
		"trying to send message larger than max (9 vs. 8)":       InvalidArgument,
		"grpc: received message larger than max (9 vs. 8)":       OutcomeUnknown, // the request, or the answer
		"grpc: received message after decompression larger than": OutcomeUnknown,
	} {
		if got := FromStatus(status.Error(codes.ResourceExhausted, text)); !errors.Is(got, want) {
			t.Errorf("%q became %v, want %v", text, got, want)
		}
	}
	own := New(Busy, "queue is full")
	if got := FromStatus(fmt.Errorf("call: %w", own)); !errors.Is(got, Busy) {
		t.Errorf("an error of ours became %v", got)
	}
	st := status.Error(codes.NotFound, "no such method")
	if got := ToStatus(st); status.Code(got) != codes.NotFound {
		t.Errorf("a status became %v", got)
	}
}

func TestTextSaysWhere(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{Field("cost", "must be at most %d", 9), "cost: must be at most 9"},
		{New(Busy, "%d messages in flight", 64), "busy: 64 messages in flight"},
		{Leader(hint), "not the leader"},
		{NoLeader, "no leader"},
	} {
		if c.err.Error() != c.want {
			t.Errorf("got %q, want %q", c.err, c.want)
		}
	}
}

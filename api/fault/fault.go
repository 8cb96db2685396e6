// Package fault is the one home of the errors that cross the wire: their kinds,
// and the mapping between Go errors, gRPC statuses and stream results.
//
// Callers act on kinds with errors.Is(err, fault.Busy), never on text.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// Kind is a sentinel error: what went wrong, without the particulars.
type Kind struct {
	code pb.Code
	grpc codes.Code
	text string
}

func (k *Kind) Error() string { return k.text }

// The kinds. All but OutcomeUnknown, Deadline and Internal mean "not charged":
// for certain, by whoever answered. Internal is what fits nowhere else, such as
// a code of a newer build, so it says nothing about the charge; a node that
// fails while it decides answers OutcomeUnknown.
var (
	InvalidArgument    = &Kind{pb.Code_CODE_INVALID_ARGUMENT, codes.InvalidArgument, "invalid argument"}
	NotLeader          = &Kind{pb.Code_CODE_NOT_LEADER, codes.FailedPrecondition, "not the leader"}
	NoLeader           = &Kind{pb.Code_CODE_NO_LEADER, codes.Unavailable, "no leader"}
	Busy               = &Kind{pb.Code_CODE_BUSY, codes.ResourceExhausted, "busy"}
	OutcomeUnknown     = &Kind{pb.Code_CODE_OUTCOME_UNKNOWN, codes.Unknown, "outcome unknown"}
	TooOld             = &Kind{pb.Code_CODE_TOO_OLD, codes.FailedPrecondition, "too old"}
	IDReused           = &Kind{pb.Code_CODE_ID_REUSED, codes.AlreadyExists, "request id reused with other content"}
	Deadline           = &Kind{pb.Code_CODE_DEADLINE, codes.DeadlineExceeded, "deadline exceeded"}
	NotHeld            = &Kind{pb.Code_CODE_NOT_HELD, codes.FailedPrecondition, "slot not held"}
	StoreFull          = &Kind{pb.Code_CODE_STORE_FULL, codes.Unavailable, "too many buckets"}
	NotReady           = &Kind{pb.Code_CODE_NOT_READY, codes.Unavailable, "not ready"}
	Unavailable        = &Kind{pb.Code_CODE_UNAVAILABLE, codes.Unavailable, "unavailable"}
	Internal           = &Kind{pb.Code_CODE_INTERNAL, codes.Internal, "internal error"}
	NotFound           = &Kind{pb.Code_CODE_NOT_FOUND, codes.NotFound, "not found"}
	Conflict           = &Kind{pb.Code_CODE_CONFLICT, codes.Aborted, "conflict"}
	PreconditionFailed = &Kind{pb.Code_CODE_PRECONDITION_FAILED, codes.FailedPrecondition, "precondition failed"}
	PolicyStale        = &Kind{pb.Code_CODE_POLICY_STALE, codes.FailedPrecondition, "policy stale"}
	NotLeased          = &Kind{pb.Code_CODE_NOT_LEASED, codes.FailedPrecondition, "not leased"}
)

var kinds = []*Kind{
	InvalidArgument, NotLeader, NoLeader, Busy, OutcomeUnknown, TooOld, IDReused, Deadline,
	NotHeld, StoreFull, NotReady, Unavailable, Internal, NotFound, Conflict, PreconditionFailed, PolicyStale, NotLeased,
}

// Error is a kind with its particulars. errors.Is(err, kind) holds for its Kind.
type Error struct {
	Kind    *Kind
	Message string
	Field   string         // InvalidArgument: path of the field
	Leader  *pb.LeaderHint // NotLeader
	Policy  string         // StoreFull: id of the policy whose failure mode decides, "" if that is not known …
	Mode    string         // … and that mode: local
}

func (e *Error) Error() string {
	switch {
	case e.Field != "" && e.Message != "":
		return e.Field + ": " + e.Message
	case e.Message != "":
		return e.Kind.text + ": " + e.Message
	default:
		return e.Kind.text
	}
}

// Unwrap makes errors.Is see the kind.
func (e *Error) Unwrap() error { return e.Kind }

// New returns an error of kind k with a formatted message.
func New(k *Kind, format string, args ...any) error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}

// Field returns an InvalidArgument error about one field.
func Field(field, format string, args ...any) error {
	return &Error{Kind: InvalidArgument, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Leader returns a NotLeader error with the leader to ask instead; hint may be nil.
func Leader(hint *pb.LeaderHint) error { return &Error{Kind: NotLeader, Leader: hint} }

// ToProto maps any error to its wire form. Errors of no kind become INTERNAL,
// context errors DEADLINE.
func ToProto(err error) *pb.Error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &pb.Error{Code: Deadline.code, Message: err.Error()}
	}
	var e *Error
	if errors.As(err, &e) {
		return &pb.Error{Code: e.Kind.code, Message: e.Message, Field: e.Field, Leader: e.Leader, PolicyId: e.Policy, FailureMode: e.Mode}
	}
	var k *Kind
	if errors.As(err, &k) {
		return &pb.Error{Code: k.code, Message: err.Error()}
	}
	return &pb.Error{Code: Internal.code, Message: err.Error()}
}

// FromProto is the inverse of ToProto; nil for nil. A code this build does not
// know becomes Internal, with its number in the message.
func FromProto(p *pb.Error) error {
	if p == nil {
		return nil
	}
	for _, k := range kinds {
		if k.code == p.GetCode() {
			return &Error{Kind: k, Message: p.GetMessage(), Field: p.GetField(), Leader: p.GetLeader(), Policy: p.GetPolicyId(), Mode: p.GetFailureMode()}
		}
	}
	return New(Internal, "code %d: %s", p.GetCode(), p.GetMessage())
}

// ToStatus maps any error to a gRPC status error that carries the wire form as
// its detail. An error that already is a status passes through.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	p := ToProto(err)
	text := err.Error()
	code := codes.Internal
	for _, k := range kinds {
		if k.code == p.GetCode() {
			code = k.grpc
		}
	}
	st, derr := status.New(code, text).WithDetails(p)
	if derr != nil {
		return status.Error(code, text)
	}
	return st.Err()
}

// FromStatus is the inverse of ToStatus. A status without our detail is of grpc
// itself, or of a proxy, and is mapped by its code. Unavailable is OutcomeUnknown,
// because a connection lost while waiting says nothing about the charge, and so
// is ResourceExhausted, which is also what an answer longer than the caller takes
// gets: only a node can say Busy. The rest is Internal.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	var own *Error
	if errors.As(err, &own) {
		return err
	}
	st, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range st.Details() {
		if p, ok := d.(*pb.Error); ok {
			return FromProto(p)
		}
	}
	switch st.Code() {
	case codes.Unavailable, codes.Canceled, codes.Aborted, codes.Unknown:
		return New(OutcomeUnknown, "%s", st.Message())
	case codes.DeadlineExceeded:
		return New(Deadline, "%s", st.Message())
	case codes.InvalidArgument:
		return New(InvalidArgument, "%s", st.Message())
	case codes.ResourceExhausted:
		if neverSent(st.Message()) {
			return New(InvalidArgument, "%s", st.Message())
		}
		return New(OutcomeUnknown, "%s", st.Message())
	default:
		return New(Internal, "%s: %s", st.Code(), st.Message())
	}
}

// neverSent tells the one bare ResourceExhausted that is certainly about the
// request: the caller's own grpc does not send what is longer than it may. Nodes
// have no such limit. It has no value of its own, only this text; "received
// message larger than max" is said of requests by nodes and of answers by callers,
// so it is not known which.
func neverSent(text string) bool {
	return strings.Contains(text, "trying to send message larger than max")
}

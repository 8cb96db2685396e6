package wire

import (
	"encoding/binary"
	"strings"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// AppendResponse appends a StreamResponse without routing.
func AppendResponse(dst []byte, id uint64, results []*pb.Result) []byte {
	return appendResults(AppendUint(dst, 1, id), 2, results)
}

// AppendRefused appends n results with the same error to a StreamResponse that has no
// routing.
func AppendRefused(dst []byte, n int, e *pb.Error) []byte {
	if n <= 0 {
		return dst
	}
	one := len(dst)
	dst, outer := Open(dst, 2)
	dst, inner := Open(dst, 2)
	dst = Close(Close(appendError(dst, e), inner), outer)
	end := len(dst)
	for range n - 1 {
		dst = append(dst, dst[one:end]...)
	}
	return dst
}

// AppendBatchResponse appends a DecideBatchResponse.
func AppendBatchResponse(dst []byte, results []*pb.Result) []byte {
	return appendResults(dst, 1, results)
}

// AppendDecideResponse appends a DecideResponse.
func AppendDecideResponse(dst []byte, d *pb.Decision) []byte {
	dst, start := Open(dst, 1)
	return Close(appendDecision(dst, d), start)
}

func appendResults(dst []byte, num int, results []*pb.Result) []byte {
	for _, r := range results {
		var outer, inner int
		dst, outer = Open(dst, num)
		if d := r.GetDecision(); d != nil {
			dst, inner = Open(dst, 1)
			dst = Close(appendDecision(dst, d), inner)
		}
		if e := r.GetError(); e != nil {
			dst, inner = Open(dst, 2)
			dst = Close(appendError(dst, e), inner)
		}
		dst = Close(dst, outer)
	}
	return dst
}

func appendDecision(dst []byte, d *pb.Decision) []byte {
	dst = appendLimit(dst, &pb.LimitDecision{
		Allowed: d.Allowed, Limit: d.Limit, Remaining: d.Remaining,
		ResetAfterNs: d.ResetAfterNs, RetryAfterNs: d.RetryAfterNs, DelayNs: d.DelayNs,
		PolicyId: d.PolicyId, PolicyVersion: d.PolicyVersion, Reason: d.Reason,
	})
	dst = AppendBool(dst, 10, d.Degraded)
	dst = AppendBool(dst, 11, d.Uncommitted)
	dst = AppendUint(dst, 12, uint64(d.Epoch))
	dst = AppendUint(dst, 13, uint64(d.Group))
	dst = AppendUint(dst, 14, d.Index)
	for _, l := range d.Limits {
		var start int
		dst, start = Open(dst, 15)
		dst = Close(appendLimit(dst, l), start)
	}
	dst = appendUint16(dst, 16, d.Term)
	dst = appendUint16(dst, 17, uint64(d.SlotTimeNs))
	if d.PermitId != "" {
		dst = append(dst, 18<<3&0x7f|2|0x80, 18>>4) // tag of field 18, bytes
		dst = append(binary.AppendUvarint(dst, uint64(len(d.PermitId))), d.PermitId...)
	}
	dst = appendUint16(dst, 19, d.FencingToken)
	if d.Witness != nil {
		var start int
		dst, start = Open16(dst, 20)
		dst = Close(appendWitness(dst, d.Witness), start)
	}
	if d.Leased {
		dst = appendUint16(dst, 21, 1)
	}
	if l := d.Lease; l != nil {
		var start int
		dst, start = Open16(dst, 22)
		dst = AppendUint(dst, 1, l.Units)
		dst = AppendUint(dst, 2, uint64(l.TtlNs))
		dst = Close(AppendUint(dst, 3, l.UnitCost), start)
	}
	return dst
}

func appendWitness(dst []byte, w *pb.Witness) []byte {
	dst = AppendUint(dst, 1, uint64(w.Group))
	dst = AppendUint(dst, 2, uint64(w.Epoch))
	dst = AppendUint(dst, 3, w.Term)
	dst = AppendUint(dst, 4, w.Index)
	dst = AppendUint(dst, 5, uint64(w.Position))
	dst = AppendUint(dst, 6, uint64(w.SlotTimeNs))
	dst = AppendBool(dst, 7, w.Uncommitted)
	return AppendBool(dst, 8, w.Repeated)
}

// appendUint16 appends a varint field numbered 16 or above, up to 2047.
func appendUint16(dst []byte, num int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	tag := num << 3
	dst = append(dst, byte(tag)|0x80, byte(tag>>7))
	return binary.AppendUvarint(dst, v)
}

// appendLimit appends the fields of a limit, or of a decision's headline.
func appendLimit(dst []byte, l *pb.LimitDecision) []byte {
	dst = AppendBool(dst, 1, l.GetAllowed())
	dst = AppendUint(dst, 2, l.GetLimit())
	dst = AppendUint(dst, 3, l.GetRemaining())
	dst = AppendUint(dst, 4, uint64(l.GetResetAfterNs()))
	dst = AppendUint(dst, 5, uint64(l.GetRetryAfterNs()))
	dst = AppendUint(dst, 6, uint64(l.GetDelayNs()))
	dst = AppendString(dst, 7, l.GetPolicyId())
	dst = AppendUint(dst, 8, l.GetPolicyVersion())
	dst = AppendString(dst, 9, l.GetReason())
	dst = AppendString(dst, 10, l.GetPermitId())
	dst = AppendUint(dst, 11, l.GetFencingToken())
	dst = AppendBool(dst, 12, l.GetShadow())
	if w := l.GetWitness(); w != nil {
		var start int
		dst, start = Open(dst, 13)
		dst = Close(appendWitness(dst, w), start)
	}
	return AppendUint(dst, 14, l.GetUnitCost())
}

func appendError(dst []byte, e *pb.Error) []byte {
	dst = AppendUint(dst, 1, uint64(e.Code))
	dst = AppendString(dst, 2, strings.ToValidUTF8(e.Message, "\uFFFD"))
	dst = AppendString(dst, 3, strings.ToValidUTF8(e.Field, "\uFFFD"))
	if h := e.Leader; h != nil {
		var start int
		dst, start = Open(dst, 4)
		dst = AppendUint(dst, 1, uint64(h.Group))
		dst = AppendUint(dst, 2, uint64(h.Epoch))
		dst = AppendString(dst, 3, h.Node)
		dst = AppendString(dst, 4, h.Grpc)
		dst = Close(dst, start)
	}
	dst = AppendString(dst, 5, e.PolicyId)
	return AppendString(dst, 6, e.FailureMode)
}

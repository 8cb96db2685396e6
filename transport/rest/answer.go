package rest

import (
	"strconv"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// rateLimited is the reason that need not be told: it is what 429 says.
const rateLimited = "rate_limited"

// appendDecision writes a decision: always allowed, remaining, limit, policy_version
// and reset_at or retry_after_ms; the rest where it says something; all limits if
// they were asked for. Times are rounded up, so that a caller who waits for them
// comes late rather than early.
func appendDecision(dst []byte, d *pb.Decision, all bool) []byte {
	dst = appendHead(dst, d)
	if d.GetPolicyId() == "" && d.GetReason() != "" && d.GetAllowed() {
		dst = appendText(dst, "reason", d.GetReason()) // no_policy: the numbers are no limit's
	}
	if d.GetDegraded() {
		dst = append(dst, `,"degraded":true`...)
	}
	if all {
		dst = append(appendLimits(append(dst, `,"limits":[`...), d), ']')
	}
	return append(dst, '}')
}

// appendLimits writes one answer for each policy that applied. Where exactly one
// did, the headline is it.
func appendLimits(dst []byte, d *pb.Decision) []byte {
	if len(d.GetLimits()) == 0 && d.GetPolicyId() != "" {
		return append(appendText(appendHead(dst, d), "policy_id", d.GetPolicyId()), '}')
	}
	for i, l := range d.GetLimits() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(appendHead(dst, l), "policy_id", l.GetPolicyId())
		if l.GetShadow() {
			dst = append(dst, `,"shadow":true`...)
		}
		dst = append(dst, '}')
	}
	return dst
}

// limit is what the headline of a decision and a limit of it share.
type limit interface {
	GetAllowed() bool
	GetLimit() uint64
	GetRemaining() uint64
	GetResetAfterNs() int64
	GetRetryAfterNs() int64
	GetDelayNs() int64
	GetPolicyVersion() uint64
	GetReason() string
	GetPermitId() string
	GetFencingToken() uint64
}

// appendHead writes the members of l, without the end of the object.
func appendHead(dst []byte, l limit) []byte {
	dst = strconv.AppendBool(append(dst, `{"allowed":`...), l.GetAllowed())
	dst = strconv.AppendUint(append(dst, `,"remaining":`...), l.GetRemaining(), 10)
	dst = strconv.AppendUint(append(dst, `,"limit":`...), l.GetLimit(), 10)
	if l.GetAllowed() {
		dst = append(appendTime(append(dst, `,"reset_at":"`...), l.GetResetAfterNs()), '"')
	} else {
		dst = strconv.AppendInt(append(dst, `,"retry_after_ms":`...), milliseconds(l.GetRetryAfterNs()), 10)
	}
	dst = strconv.AppendUint(append(dst, `,"policy_version":`...), l.GetPolicyVersion(), 10)
	if !l.GetAllowed() && l.GetReason() != rateLimited {
		dst = appendText(dst, "reason", l.GetReason())
	}
	if l.GetAllowed() && l.GetDelayNs() > 0 {
		dst = strconv.AppendInt(append(dst, `,"delay_ms":`...), milliseconds(l.GetDelayNs()), 10)
	}
	if l.GetPermitId() != "" {
		dst = appendText(dst, "permit_id", l.GetPermitId())
		dst = strconv.AppendUint(append(dst, `,"fencing_token":`...), l.GetFencingToken(), 10)
	}
	return dst
}

// appendTime writes the time that is so far from now, by this node's clock, in whole ms.
func appendTime(dst []byte, after int64) []byte {
	t := time.Now().Add(time.Duration(after)).Add(time.Millisecond - 1)
	return t.UTC().Truncate(time.Millisecond).AppendFormat(dst, "2006-01-02T15:04:05.000Z")
}

// appendText writes a member. Names and values are ours, or policy ids: printable ASCII.
func appendText(dst []byte, name, value string) []byte {
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return appendJSON(dst, value)
}

// milliseconds rounds a wait up; -1, never, stays.
func milliseconds(ns int64) int64 {
	if ns < 0 {
		return -1
	}
	return roundUp(ns, int64(time.Millisecond))
}

func roundUp(n, unit int64) int64 {
	whole := n / unit
	if n%unit > 0 {
		whole++
	}
	return whole
}

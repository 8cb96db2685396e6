package simulate

import (
	"encoding/json"
	"strconv"

	"github.com/ringlimit/ringlimit/decision"
)

// AppendJSON appends the outcome of an event as one line.
func (o *Outcome) AppendJSON(dst []byte, e *Event) []byte {
	head := decision.Limit{Reason: o.Reason}
	if o.Head >= 0 {
		head = o.Limits[o.Head]
	} else if !o.Allowed {
		head.RetryAfter = -1
	}
	dst = append(append(dst, `{"t":"`...), e.T...) // digits and a point
	dst = append(dst, `","allowed":`...)
	dst = strconv.AppendBool(dst, o.Allowed)
	dst = append(dst, `,"policy_id":`...)
	dst = appendText(dst, head.PolicyID)
	dst = append(dst, `,"remaining":`...)
	dst = strconv.AppendUint(dst, head.Remaining, 10)
	dst = append(dst, `,"retry_after_ns":`...)
	dst = strconv.AppendInt(dst, head.RetryAfter, 10)
	dst = append(dst, `,"reset_after_ns":`...)
	dst = strconv.AppendInt(dst, head.ResetAfter, 10)
	dst = append(dst, `,"delay_ns":`...)
	dst = strconv.AppendInt(dst, decision.Delay(o.Limits), 10)
	dst = append(dst, `,"reason":`...)
	dst = appendText(dst, head.Reason)
	return append(dst, "}\n"...)
}

// appendText appends a JSON string.
func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			b, _ := json.Marshal(s) // a string always can be
			return append(dst, b...)
		}
	}
	dst = append(append(dst, '"'), s...)
	return append(dst, '"')
}

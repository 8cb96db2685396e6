package envoy

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
)

// texts are the strings of a message, at any depth, by number.
type texts struct {
	text   []protowire.Number
	within map[protowire.Number]*texts
}

// requestTexts are those of a RateLimitRequest that callers of Envoy have a say in.
var requestTexts = &texts{
	text: []protowire.Number{1}, // domain
	within: map[protowire.Number]*texts{2: { // descriptors
		within: map[protowire.Number]*texts{1: {text: []protowire.Number{1, 2}}}, // entries: key and value
	}},
}

// mend appends to dst the message b with its texts in UTF-8: what is none becomes
// U+FFFD. Envoy puts headers into descriptors as they come, and protobuf refuses
// other bytes; were that an error, a caller with such a header would have a call that
// fails, which Envoy lets through by default. Different ones may become the same,
// which is stricter, never looser. ok is false for what is no message.
func (m *texts) mend(dst, b []byte) (out []byte, ok bool) {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, false
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return nil, false
		}
		if typ != protowire.BytesType {
			dst = append(dst, b[:n+size]...)
			b = b[n+size:]
			continue
		}
		value, _ := protowire.ConsumeBytes(b[n:])
		if inner := m.within[num]; inner != nil {
			if value, ok = inner.mend(nil, value); !ok {
				return nil, false
			}
		}
		for _, t := range m.text {
			if t == num {
				value = bytes.ToValidUTF8(value, []byte("\uFFFD"))
			}
		}
		dst = protowire.AppendBytes(protowire.AppendTag(dst, num, typ), value)
		b = b[n+size:]
	}
	return dst, true
}

package envoy

import (
	"testing"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// request is one descriptor of one entry, in bytes.
func request(domain, key, value string) []byte {
	entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
	entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), value)
	descriptor := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), entry)
	out := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), domain)
	out = protowire.AppendBytes(protowire.AppendTag(out, 2, protowire.BytesType), descriptor)
	return protowire.AppendVarint(protowire.AppendTag(out, 3, protowire.VarintType), 7)
}

// TestOtherBytesThanUTF8AreNoWayAround: a header of any bytes is judged.
func TestOtherBytesThanUTF8AreNoWayAround(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"plain", "plain"}, {"é", "é"}, {"a\xffb", "a\uFFFDb"}, {"\xff\xfe", "\uFFFD"}, {"", ""},
	} {
		in, err := decode(request("edge", "path", c.value))
		if err != nil {
			t.Errorf("%q: %v", c.value, err)
			continue
		}
		e := in.GetDescriptors()[0].GetEntries()[0]
		if in.GetDomain() != "edge" || e.GetKey() != "path" || e.GetValue() != c.want || in.GetHitsAddend() != 7 {
			t.Errorf("%q: %v", c.value, in)
		}
	}
	for _, bad := range []string{"\xff", "\x0a\x05ab", "\x12\x03\x0a\x05a", "\x0a\x02\xff"} {
		if in, err := decode([]byte(bad)); err == nil {
			t.Errorf("%q reads as %v", bad, in)
		}
	}
}

// FuzzDecode: whatever protobuf reads is read as it is, and nothing panics.
func FuzzDecode(f *testing.F) {
	f.Add(request("edge", "path", "/"))
	f.Add(request("\xff", "\xff", "\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decode(b)
		want := new(rls.RateLimitRequest)
		if proto.Unmarshal(b, want) == nil && (err != nil || !proto.Equal(got, want)) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
		if err == nil {
			if q, err := read(got); err == nil && len(q.requests.Message.Requests) != len(got.GetDescriptors()) {
				t.Errorf("%d requests for %v", len(q.requests.Message.Requests), got)
			}
		}
	})
}

package wire

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

func cost(v int64) *int64 { return &v }

func full() *pb.DecideRequest {
	return &pb.DecideRequest{
		Subject: &pb.Subject{
			Tenant: "acme", Principals: []*pb.Principal{{Type: "user", Id: "u1"}, {Type: "ip", Id: "10.0.0.1"}},
			Route: "POST:/v1/payments", Plan: "standard", Region: "eu", Attributes: []*pb.Attribute{{Name: "shard", Value: "ü"}, {}},
		},
		Cost: cost(3), Sent: &pb.Sent{Session: 7, Sequence: 9, Attempt: 2, AgeNs: 1e9, Epoch: 4}, StaleOk: true, Witness: true,
		Costs: []*pb.PolicyCost{{Policy: "export", Cost: 1e9}, {Policy: "ü"}, {}}, Lease: &pb.LeaseAsk{Units: 1e9, Acked: 1 << 50},
	}
}

func marshal(t testing.TB, m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRequestsAreReadAsProtobufDoes(t *testing.T) {
	m := &pb.StreamRequest{
		Id: 300, Session: 7, Acked: 1 << 40, Revision: 5, TimeoutNs: 2e9,
		Requests: []*pb.DecideRequest{full(), {Subject: &pb.Subject{}, Cost: cost(0)}, {Subject: &pb.Subject{Tenant: "x"}, RequestId: strings.Repeat("i", 64)}},
	}
	var r Requests
	for range 3 { // memory is reused
		if err := r.Stream(marshal(t, m), MaxRequests); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(&r.Message, m) || len(r.Bad) != 0 || r.Len() != 3 {
			t.Fatalf("got %v, bad %v", &r.Message, r.Bad)
		}
	}
	if err := r.Batch(marshal(t, &pb.DecideBatchRequest{Requests: m.Requests})); err != nil || !proto.Equal(&r.Message, &pb.StreamRequest{Requests: m.Requests}) {
		t.Errorf("batch: %v, %v", &r.Message, err)
	}
	if err := r.Decide(marshal(t, full())); err != nil || !proto.Equal(r.Message.Requests[0], full()) {
		t.Errorf("decide: %v, %v", &r.Message, err)
	}
}

func TestOnlySoManyRequestsAreRead(t *testing.T) {
	m := &pb.StreamRequest{Id: 300, Session: 7, TimeoutNs: 2e9, Requests: []*pb.DecideRequest{full(), full(), full(), full()}}
	var r Requests
	for most := range 6 {
		if err := r.Stream(marshal(t, m), most); err != nil {
			t.Fatal(err)
		}
		want := proto.CloneOf(m)
		want.Requests = want.Requests[:min(most, 4)]
		if !proto.Equal(&r.Message, want) || r.Unread != 4-len(want.Requests) {
			t.Errorf("at most %d: got %v, %d unread", most, &r.Message, r.Unread)
		}
	}
}

func TestRefusalsAreResultsLikeOthers(t *testing.T) {
	results := []*pb.Result{{Decision: &pb.Decision{Allowed: true}}}
	e := fault.ToProto(fault.New(fault.Busy, "full"))
	for n := range 3 {
		var got pb.StreamResponse
		if err := proto.Unmarshal(AppendRefused(AppendResponse(nil, 7, results), n, e), &got); err != nil {
			t.Fatal(err)
		}
		want := &pb.StreamResponse{Id: 7, Results: results}
		for range n {
			want.Results = append(want.Results, &pb.Result{Error: e})
		}
		if !proto.Equal(&got, want) {
			t.Errorf("%d refused: got %v", n, &got)
		}
	}
}

func TestSentTakesTheSessionOfTheMessage(t *testing.T) {
	m := &pb.StreamRequest{Session: 7, Requests: []*pb.DecideRequest{{Sent: &pb.Sent{Sequence: 1}}, {Sent: &pb.Sent{Sequence: 2, Session: 7}}, {}}}
	var r Requests
	if err := r.Stream(marshal(t, m), MaxRequests); err != nil || len(r.Bad) != 0 {
		t.Fatal(err, r.Bad)
	}
	for _, q := range r.Message.Requests[:2] {
		if q.Sent.Session != 7 {
			t.Errorf("got %v", q)
		}
	}
	if r.Message.Requests[2].Sent != nil || r.Message.Requests[2].Subject == nil {
		t.Errorf("got %v", r.Message.Requests[2])
	}
}

// TestALeaseNamesItsOwnSession: other than that of the message it came in.
func TestALeaseNamesItsOwnSession(t *testing.T) {
	m := &pb.StreamRequest{Session: 7, Requests: []*pb.DecideRequest{{Sent: &pb.Sent{Session: 8, Sequence: 1}, Lease: &pb.LeaseAsk{Units: 3, Acked: 2}}}}
	var r Requests
	if err := r.Stream(marshal(t, m), MaxRequests); err != nil || len(r.Bad) != 0 {
		t.Fatal(err, r.Bad)
	}
	if q := r.Message.Requests[0]; q.Sent.Session != 8 || q.Lease.Units != 3 || q.Lease.Acked != 2 {
		t.Errorf("got %v", q)
	}
}

func TestRefundsNameWhatTheyGiveBack(t *testing.T) {
	lease := &pb.Sent{Session: 1, Sequence: 2}
	for field, r := range map[string]*pb.RefundRequest{
		"":               {RequestId: "i"},
		"-":              {Lease: lease, Cost: 5},
		"request_id":     {},
		"request_id ":    {RequestId: "i", Lease: lease},
		"lease.sequence": {Lease: &pb.Sent{Session: 1}},
		"cost":           {Lease: lease, Cost: -1},
		"sent.session":   {RequestId: "i", Sent: &pb.Sent{Sequence: 1}},
		"lease.age_ns":   {Lease: &pb.Sent{Session: 1, Sequence: 1, AgeNs: math.MaxUint64}},
	} {
		err := CheckRefund(r)
		var e *fault.Error
		if wrong := strings.Trim(field, "- "); (err == nil) != (wrong == "") || errors.As(err, &e) && !strings.HasPrefix(e.Field, wrong) {
			t.Errorf("%q: %v", field, err)
		}
	}
}

func TestBadRequestsAreNamed(t *testing.T) {
	many := func(n int) *pb.DecideRequest {
		s := &pb.Subject{}
		for range n {
			s.Principals = append(s.Principals, &pb.Principal{Type: "user"})
			s.Attributes = append(s.Attributes, &pb.Attribute{Name: "a"})
		}
		return &pb.DecideRequest{Subject: s}
	}
	attributes := many(17)
	attributes.Subject.Principals = nil
	for _, c := range []struct {
		field string
		bytes []byte
	}{
		{"cost", marshal(t, &pb.DecideRequest{Cost: cost(-1)})},
		{"cost", marshal(t, &pb.DecideRequest{Cost: cost(MaxCost + 1)})},
		{"cost", marshal(t, &pb.DecideRequest{Cost: cost(math.MinInt64)})},
		{"costs[1].cost", marshal(t, &pb.DecideRequest{Costs: []*pb.PolicyCost{{}, {Policy: "p", Cost: -1}}})},
		{"costs[0].cost", marshal(t, &pb.DecideRequest{Costs: []*pb.PolicyCost{{Cost: MaxCost + 1}}})},
		{"costs[0].policy", []byte("\x32\x03\x0a\x01\xff")},
		{"costs[1]", []byte("\x32\x00\x32\x01\x0a")},
		{"costs", []byte(strings.Repeat("\x32\x00", MaxCosts+1))},
		{"request_id", marshal(t, &pb.DecideRequest{RequestId: strings.Repeat("i", 65)})},
		{"request_id", marshal(t, &pb.DecideRequest{RequestId: "i", Sent: &pb.Sent{Session: 7, Sequence: 1}})},
		{"sent.sequence", marshal(t, &pb.DecideRequest{Sent: &pb.Sent{Session: 7}})},
		{"sent.session", marshal(t, &pb.DecideRequest{Sent: &pb.Sent{Session: 8, Sequence: 1}})},
		{"sent.session", marshal(t, &pb.DecideRequest{Sent: &pb.Sent{Sequence: 1}, Lease: &pb.LeaseAsk{Units: 1}})},
		{"lease.units", marshal(t, &pb.DecideRequest{Lease: &pb.LeaseAsk{}})},
		{"lease.units", marshal(t, &pb.DecideRequest{Lease: &pb.LeaseAsk{Units: MaxCost + 1}})},
		{"cost", marshal(t, &pb.DecideRequest{Cost: cost(0), Lease: &pb.LeaseAsk{Units: 1}})},
		{"lease", []byte("\x42\x01\x08")},
		{"sent.age_ns", marshal(t, &pb.DecideRequest{Sent: &pb.Sent{Session: 7, Sequence: 1, AgeNs: math.MaxUint64}})},
		{"subject.principals", marshal(t, many(9))},
		{"subject.attributes", marshal(t, attributes)},
		{"subject.tenant", []byte("\x0a\x04\x0a\x02a\xff")},
		{"subject.route", []byte("\x0a\x03\x1a\x01\x80")},
		{"subject.plan", []byte("\x0a\x03\x22\x01\x80")},
		{"subject.region", []byte("\x0a\x03\x2a\x01\x80")},
		{"request_id", []byte("\x1a\x01\xc0")},
		{"subject.principals[1].id", []byte("\x0a\x07\x12\x00\x12\x03\x12\x01\xff")},
		{"subject.attributes[0].name", []byte("\x0a\x05\x32\x03\x0a\x01\xff")},
		{"", []byte("\x0a\x05\x0a")},
		{"", []byte("\x10")},
		{"sent", []byte("\x22\x01\x10")},
	} {
		good := marshal(t, full())
		b := AppendFixed64(nil, 2, 7)
		for _, q := range [][]byte{good, c.bytes, good} {
			b = AppendString(b, 5, string(q))
		}
		var r Requests
		if err := r.Stream(b, MaxRequests); err != nil {
			t.Errorf("%q: %v", c.bytes, err)
			continue
		}
		if len(r.Message.Requests) != 2 || len(r.Bad) != 1 || r.Bad[0].Index != 1 {
			t.Errorf("%q: %d good, bad %v", c.bytes, len(r.Message.Requests), r.Bad)
			continue
		}
		want := "requests[1]"
		if c.field != "" {
			want += "." + c.field
		}
		var e *fault.Error
		if err := r.Bad[0].Err; !errors.As(err, &e) || e.Kind != fault.InvalidArgument || e.Field != want {
			t.Errorf("%q: error about %v, want %s", c.bytes, err, want)
		}
	}
}

func TestTooManyRequestsAreRefusedEarly(t *testing.T) {
	var r Requests
	if err := r.Stream([]byte(strings.Repeat("\x2a\x00", MaxRequests)), MaxRequests); err != nil || r.Len() != MaxRequests {
		t.Errorf("%d requests: %v", r.Len(), err)
	}
	err := r.Stream([]byte(strings.Repeat("\x2a\x00", MaxMessage/2)), MaxRequests)
	if !errors.Is(err, fault.InvalidArgument) || err.Error() != "requests: must be at most 1000" || r.Len() > MaxRequests {
		t.Errorf("%d requests: %v", r.Len(), err)
	}
}

// FuzzRequests holds the decoder to protobuf: what it accepts protobuf accepts
// too, with the same meaning, and what it refuses breaks a rule.
func FuzzRequests(f *testing.F) {
	f.Add(marshal(f, &pb.StreamRequest{Id: 1, Session: 7, Requests: []*pb.DecideRequest{full(), {}, {RequestId: "x"}}}))
	f.Add([]byte("\x2a\x02\x1a\x00\x2a\x06\x0a\x00\x0a\x02\x12\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Requests
		err := r.Stream(b, MaxRequests)
		var want pb.StreamRequest
		perr := proto.Unmarshal(b, &want)
		if perr != nil {
			if err == nil && len(r.Bad) == 0 {
				t.Fatalf("accepted %v, protobuf says %v", &r.Message, perr)
			}
			return
		}
		if err != nil {
			if len(want.Requests) <= MaxRequests {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		next := 0
		for i, q := range want.Requests {
			bad := len(r.Bad) > 0 && r.Bad[0].Index == i
			if bad {
				r.Bad = r.Bad[1:]
			} else {
				if !sameAs(r.Message.Requests[next], q, want.Session) {
					t.Fatalf("request %d is %v, want %v", i, r.Message.Requests[next], q)
				}
				next++
			}
			if bad == wellFormed(q, want.Session) {
				t.Fatalf("request %d: bad is %v: %v", i, bad, q)
			}
		}
		r.Message.Requests, want.Requests = nil, nil
		want.ProtoReflect().SetUnknown(nil)
		if !proto.Equal(&r.Message, &want) {
			t.Fatalf("got %v, want %v", &r.Message, &want)
		}
	})
}

func wellFormed(q *pb.DecideRequest, session uint64) bool {
	s := q.Sent
	for _, c := range q.Costs {
		if c.Cost < 0 || c.Cost > MaxCost {
			return false
		}
	}
	if l := q.Lease; l != nil {
		if l.Units < 1 || l.Units > MaxCost || q.Cost != nil && *q.Cost == 0 {
			return false
		}
		session = 0
	}
	return q.GetCost() >= 0 && q.GetCost() <= MaxCost && len(q.RequestId) <= 64 &&
		len(q.GetSubject().GetPrincipals()) <= 8 && len(q.GetSubject().GetAttributes()) <= 16 && len(q.Costs) <= MaxCosts &&
		(s == nil || q.RequestId == "" && s.Sequence > 0 && s.AgeNs <= math.MaxInt64 &&
			(session == 0 && s.Session != 0 || session != 0 && (s.Session == 0 || s.Session == session)))
}

// sameAs compares what protobuf read with what we read: without unknown fields,
// with a subject and the session.
func sameAs(got, want *pb.DecideRequest, session uint64) bool {
	want = proto.Clone(want).(*pb.DecideRequest)
	if want.Subject == nil {
		want.Subject = &pb.Subject{}
	}
	if want.Sent != nil {
		if want.Lease == nil {
			want.Sent.Session = max(want.Sent.Session, session)
		}
		want.Sent.ProtoReflect().SetUnknown(nil)
	}
	if want.Lease != nil {
		want.Lease.ProtoReflect().SetUnknown(nil)
	}
	want.ProtoReflect().SetUnknown(nil)
	want.Subject.ProtoReflect().SetUnknown(nil)
	for _, p := range want.Subject.Principals {
		p.ProtoReflect().SetUnknown(nil)
	}
	for _, a := range want.Subject.Attributes {
		a.ProtoReflect().SetUnknown(nil)
	}
	for _, c := range want.Costs {
		c.ProtoReflect().SetUnknown(nil)
	}
	return proto.Equal(got, want)
}

func TestOpenAndCloseWriteAnyLength(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 16383, 16384, 1 << 20} {
		dst, start := Open([]byte("before"), 3)
		dst = append(dst, strings.Repeat("x", n)...)
		want := AppendString([]byte("before"), 3, strings.Repeat("x", n))
		if n == 0 {
			want = append([]byte("before"), 3<<3|2, 0)
		}
		if got := Close(dst, start); string(got) != string(want) {
			t.Errorf("%d bytes: %d written, want %d", n, len(got), len(want))
		}
	}
}

func BenchmarkRequests(b *testing.B) {
	m := &pb.StreamRequest{Id: 1, Session: 7}
	for i := range 100 {
		m.Requests = append(m.Requests, &pb.DecideRequest{
			Subject: &pb.Subject{Tenant: fmt.Sprintf("tenant-%d", i), Route: "GET:/v1/items"}, Sent: &pb.Sent{Sequence: uint64(i + 1), Attempt: 1},
		})
	}
	data := marshal(b, m)
	b.Run("hand", func(b *testing.B) {
		b.ReportAllocs()
		var r Requests
		for b.Loop() {
			if err := r.Stream(data, MaxRequests); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := proto.Unmarshal(data, new(pb.StreamRequest)); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestCheckDecideIsWhatDecodingChecks, for requests that came another way.
func TestCheckDecideIsWhatDecodingChecks(t *testing.T) {
	cost := int64(MaxCost + 1)
	for field, q := range map[string]*pb.DecideRequest{
		"":                   {Subject: &pb.Subject{Tenant: "a"}},
		"cost":               {Cost: &cost},
		"request_id":         {RequestId: strings.Repeat("x", MaxRequestID+1)},
		"sent.sequence":      {Sent: &pb.Sent{Session: 1}},
		"subject.principals": {Subject: &pb.Subject{Principals: make([]*pb.Principal, MaxPrincipals+1)}},
		"subject.attributes": {Subject: &pb.Subject{Attributes: make([]*pb.Attribute, MaxAttributes+1)}},
	} {
		err := CheckDecide(q)
		var e *fault.Error
		if (err == nil) != (field == "") || errors.As(err, &e) && e.Field != field {
			t.Errorf("%q: %v", field, err)
		}
	}
}

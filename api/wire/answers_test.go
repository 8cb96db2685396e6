package wire

import (
	"testing"

	"google.golang.org/protobuf/proto"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

func decision() *pb.Decision {
	return &pb.Decision{
		Allowed: true, Limit: 100, Remaining: 99, ResetAfterNs: 600_000_000, RetryAfterNs: -1, DelayNs: 5, PolicyId: "payments",
		PolicyVersion: 812, Reason: "rate_limited", Degraded: true, Uncommitted: true, Epoch: 3, Group: 2, Index: 1 << 40,
		Limits: []*pb.LimitDecision{
			{Allowed: true, Limit: 1, Remaining: 2, ResetAfterNs: 3, RetryAfterNs: -1, DelayNs: 4, PolicyId: "a", PolicyVersion: 5, Reason: "b", PermitId: "g0-e1-p9", FencingToken: 1 << 33, Shadow: true, Witness: witnessed(6), UnitCost: 1 << 34}, {},
		},
		Term: 9, SlotTimeNs: 77, PermitId: "g0-e1-p9", FencingToken: 1<<63 + 5, Witness: witnessed(1 << 60),
		Leased: true, Lease: &pb.Lease{Units: 1 << 35, TtlNs: 1e9, UnitCost: 7},
	}
}

func witnessed(index uint64) *pb.Witness {
	return &pb.Witness{Group: 2, Epoch: 3, Term: 1 << 40, Index: index, Position: 8192, SlotTimeNs: 1 << 62, Uncommitted: true, Repeated: true}
}

func response() *pb.StreamResponse {
	return &pb.StreamResponse{Id: 300, Results: []*pb.Result{
		{Decision: decision()},
		{Error: &pb.Error{Code: pb.Code_CODE_NOT_LEADER, Message: "m", Field: "f", Leader: &pb.LeaderHint{Group: 1, Epoch: 2, Node: "b", Grpc: "b:1"}}},
		{Error: &pb.Error{Code: pb.Code_CODE_STORE_FULL, Message: "m", PolicyId: "p", FailureMode: "local"}},
		{Decision: &pb.Decision{}},
		{},
	}}
}

func TestAnswersAreWrittenAsProtobufDoes(t *testing.T) {
	m := response()
	if got, want := AppendResponse(nil, m.Id, m.Results), marshal(t, m); string(got) != string(want) {
		t.Errorf("response:\n%x, want\n%x", got, want)
	}
	if got, want := AppendBatchResponse(nil, m.Results), marshal(t, &pb.DecideBatchResponse{Results: m.Results}); string(got) != string(want) {
		t.Errorf("batch:\n%x, want\n%x", got, want)
	}
	if got, want := AppendDecideResponse(nil, decision()), marshal(t, &pb.DecideResponse{Decision: decision()}); string(got) != string(want) {
		t.Errorf("decide:\n%x, want\n%x", got, want)
	}
}

func TestErrorTextIsAlwaysUTF8(t *testing.T) {
	var got pb.StreamResponse
	if err := proto.Unmarshal(AppendResponse(nil, 1, []*pb.Result{{Error: &pb.Error{Message: "tenant \xff", Field: "\x80"}}}), &got); err != nil {
		t.Error(err)
	}
}

// read reads everything, as copies.
func readAll(a *Answers, b []byte) (*pb.StreamResponse, error) {
	if err := a.Parse(b); err != nil {
		return nil, err
	}
	m := &pb.StreamResponse{Id: a.ID, Routing: a.Routing}
	for {
		r, err := a.Next()
		if err != nil || r == nil {
			return m, err
		}
		m.Results = append(m.Results, proto.Clone(r).(*pb.Result))
	}
}

func TestAnswersAreReadAsProtobufDoes(t *testing.T) {
	m := response()
	m.Routing = &pb.Routing{ClusterId: "c", Slots: 2, SlotGroups: []uint32{0, 1}, Groups: []*pb.GroupRoute{{Group: 1, Term: 4}}}
	var a Answers
	for range 3 {
		got, err := readAll(&a, marshal(t, m))
		if err != nil || !proto.Equal(got, m) || a.Len != len(m.Results) {
			t.Fatalf("got %v, %v", got, err)
		}
	}
}

// FuzzAnswers holds the reader to protobuf, and what was read to the writer.
func FuzzAnswers(f *testing.F) {
	f.Add(marshal(f, response()))
	f.Add(marshal(f, &pb.StreamResponse{Routing: &pb.Routing{ClusterId: "c"}}))
	var a Answers
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readAll(&a, b)
		want := new(pb.StreamResponse)
		perr := proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, want)
		if (err == nil) != (perr == nil) {
			t.Fatalf("error %v, protobuf says %v", err, perr)
		}
		if err != nil {
			return
		}
		forget(got)
		if !proto.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		again, err := readAll(new(Answers), AppendResponse(nil, got.Id, got.Results))
		got.Routing = nil
		if err != nil || !proto.Equal(again, got) {
			t.Fatalf("wrote %v, read %v, %v", got, again, err)
		}
	})
}

// forget drops unknown fields of the parts that protobuf reads for us.
func forget(m *pb.StreamResponse) {
	b, _ := proto.Marshal(m)
	proto.Reset(m)
	_ = proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(b, m)
}

func BenchmarkAnswers(b *testing.B) {
	m := &pb.StreamResponse{Id: 1}
	for range 100 {
		d := decision()
		d.Limits = nil
		m.Results = append(m.Results, &pb.Result{Decision: d})
	}
	data := marshal(b, m)
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		var a Answers
		for b.Loop() {
			if err := a.Parse(data); err != nil {
				b.Fatal(err)
			}
			for range a.Len {
				if _, err := a.Next(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("read-protobuf", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := proto.Unmarshal(data, new(pb.StreamResponse)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf = AppendResponse(buf[:0], m.Id, m.Results)
		}
	})
	b.Run("write-protobuf", func(b *testing.B) {
		b.ReportAllocs()
		var buf []byte
		for b.Loop() {
			buf, _ = proto.MarshalOptions{}.MarshalAppend(buf[:0], m)
		}
	})
}

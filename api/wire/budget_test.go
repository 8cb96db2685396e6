package wire

import (
	"fmt"
	"testing"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// What a message of a hundred may allocate once memory is reused. These are promises:
// garbage is what a decision costs most easily, and least visibly.

const perMessage = 100

func askedBatch() *pb.StreamRequest {
	m := &pb.StreamRequest{Id: 1, Session: 7, Acked: 900}
	for i := range perMessage {
		m.Requests = append(m.Requests, &pb.DecideRequest{
			Subject: &pb.Subject{Tenant: fmt.Sprintf("tenant-%d", i), Route: "GET:/v1/items"}, Sent: &pb.Sent{Sequence: uint64(i + 1000), Attempt: 1},
		})
	}
	return m
}

func answeredBatch() []*pb.Result {
	var all []*pb.Result
	for i := range perMessage {
		all = append(all, &pb.Result{Decision: &pb.Decision{
			Allowed: true, Limit: 1000, Remaining: uint64(i), ResetAfterNs: 5e9, PolicyId: "wide", PolicyVersion: 3,
			Epoch: 1, Group: 2, Index: 1 << 20, Term: 4, SlotTimeNs: 1 << 40,
		}})
	}
	return all
}

func TestDecodingABatchAllocatesItsStringsAtOnce(t *testing.T) {
	data := marshal(t, askedBatch())
	var r Requests
	n := testing.AllocsPerRun(100, func() {
		if err := r.Stream(data, MaxRequests); err != nil || r.Len() != perMessage {
			t.Fatal(err, r.Len())
		}
	})
	if n > 1 { // the text that all strings are parts of
		t.Errorf("%v allocations for a message of %d, want 1", n, perMessage)
	}
}

func TestEncodingAnswersAllocatesNothing(t *testing.T) {
	results := answeredBatch()
	var b []byte
	n := testing.AllocsPerRun(100, func() { b = AppendResponse(b[:0], 7, results) })
	if n != 0 || len(b) == 0 {
		t.Errorf("%v allocations for %d answers, want none", n, perMessage)
	}
}

func TestReadingAnswersAllocatesNothing(t *testing.T) {
	data := AppendResponse(nil, 7, answeredBatch())
	var a Answers
	n := testing.AllocsPerRun(100, func() {
		if err := a.Parse(data); err != nil || a.Len != perMessage {
			t.Fatal(err, a.Len)
		}
		for {
			r, err := a.Next()
			if err != nil {
				t.Fatal(err)
			}
			if r == nil {
				return
			}
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for %d answers, want none", n, perMessage)
	}
}

func BenchmarkAppendResponse(b *testing.B) {
	results := answeredBatch()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendResponse(buf[:0], 7, results)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*perMessage), "ns/answer")
}

package check

import (
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/client"
)

// spree is n tokens taken from hot one after the other within a few ms.
func spree(n int) (ops []Op) {
	for i := range n {
		at := time.Duration(i) * time.Millisecond / 10
		ops = append(ops, Op{Bucket: "hot", Cost: 1, Call: at, Return: at + 1, Outcome: Admitted, Passed: true, Leased: true, Version: uint64(2 - i%2), Policy: "p", Capacity: 10})
	}
	return ops
}

// TestLeasedBucketsAreHeldToTheirBound: burst + rate × (time + the time of a lease), and
// to nothing that single answers would have to agree on.
func TestLeasedBucketsAreHeldToTheirBound(t *testing.T) {
	s := &Setup{Limits: map[string]Limit{"hot": {Algorithm: bucket.TokenBucket, Amount: 10, Burst: 10, Window: int64(time.Second)}}, MinAnswers: 1}
	if len(Findings(All(s, spree(20)))) == 0 {
		t.Error("20 of a strict bucket of 10 at once, and nobody finds it")
	}
	s.Leased = map[string]time.Duration{"hot": time.Second}
	if found := Findings(All(s, spree(20))); len(found) > 0 {
		t.Errorf("%v", found)
	}
	found := Findings(All(s, spree(24)))
	if len(found) != 1 || found[0].Checker != "window" {
		t.Errorf("24: %v", found)
	}
}

// TestAnswerOfALeaseHasNoPlaceInALog: what stands in it is where the lease was granted.
func TestAnswerOfALeaseHasNoPlaceInALog(t *testing.T) {
	d := client.Decision{Answer: client.Answer{Allowed: true, PolicyID: "p", PolicyVersion: 1}, Leased: true, Group: 1, Epoch: 1, Term: 1, Index: 7, SlotTime: 9}
	ops := Answered(Op{Bucket: "hot", Cost: 1}, &d, nil, nil)
	if len(ops) != 1 || !ops[0].Leased || ops[0].Witness != (Witness{}) || ops[0].Outcome != Admitted {
		t.Errorf("%+v", ops)
	}
}

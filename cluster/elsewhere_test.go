package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// TestMovingSlotHoldsUpNoOther: a message of a stream is answered soon, also where
// one of its requests is for a slot that nobody takes for now.
func TestMovingSlotHoldsUpNoOther(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		slot := s.slot("t")
		from := s.any().control.State().SlotGroup[slot]
		other := ""
		for i := 0; other == ""; i++ {
			name := fmt.Sprint("other", i)
			if sl := s.slot(name); sl != slot && s.any().control.State().SlotGroup[sl] == from {
				other = name
			}
		}
		leader, ok := s.any().table.leader(from)
		if !ok {
			t.Fatal("no leader")
		}
		x := s.nodes[leader.node]
		s.slow(20 * time.Millisecond)
		s.begin(s.elsewhere(slot), slot)
		s.eventually(5*time.Second, func() error {
			if p := s.phase(slot); p != "copying sealed" {
				return fmt.Errorf("it is %s", p)
			}
			return nil
		})
		m := &pb.StreamRequest{Id: 7, Requests: []*pb.DecideRequest{request("t", "year"), request(other, "year")}}
		begun := time.Now()
		results := x.Decide(t.Context(), m, nil)
		took := time.Since(begun)
		if results[1].GetDecision() == nil || fault.FromProto(results[0].GetError()) == nil || results[0].GetError().GetCode() != pb.Code_CODE_NOT_HELD {
			t.Errorf("%v", results)
		}
		if took > 50*time.Millisecond { // one commit over slow links, not a move
			t.Errorf("the message took %v", took)
		}
		m.Id = 0 // a call of its own waits
		results = x.Decide(t.Context(), m, nil)
		if results[0].GetDecision() == nil || results[1].GetDecision() == nil {
			t.Errorf("%v", results)
		}
		s.ended(slot, 10*time.Second)
	})
}

package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// elsewhereThan is a tenant whose group is led by the same node as another's or not,
// but is not the same.
func (s *sim) elsewhereThan(tenant string) string {
	slots := s.any().control.State().SlotGroup
	for i := 0; ; i++ {
		name := fmt.Sprint("other", i)
		if slots[s.slot(name)] != slots[s.slot(tenant)] {
			return name
		}
	}
}

// TestFullGroupRefusesAtOnceAndNoOtherWithIt: as much waits for one group as may.
func TestFullGroupRefusesAtOnceAndNoOtherWithIt(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		x := s.nodes[s.leader("t")]
		group := x.view.Load().state.SlotGroup[s.slot("t")]
		q := x.view.Load().queues[group]
		q.Enter(x.since(), nil, 2*maxWaiting, int64(time.Hour))
		m := &pb.StreamRequest{Requests: []*pb.DecideRequest{request("t", "year"), request(s.elsewhereThan("t"), "year"), request("t", "year")}}
		begun := time.Now()
		results := x.Decide(t.Context(), m, nil)
		for i, busy := range []bool{true, false, true} {
			if r := results[i]; (r.GetError().GetCode() == pb.Code_CODE_BUSY) != busy || busy == (r.GetDecision() != nil) {
				t.Errorf("request %d: %v", i, r)
			}
		}
		if took := time.Since(begun); took > 50*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		if n, seats := x.Enter(nil, m.Requests[0], 10, time.Second); n != 0 || seats != nil {
			t.Errorf("%d of 10 entered the full group", n)
		}
		if n, seats := x.Enter(nil, m.Requests[1], 10, time.Second); n != 10 {
			t.Errorf("%d of 10 entered the other", n)
		} else {
			seats.Leave()
		}
		q.Leave(nil, 2*maxWaiting)
		if r := x.Decide(t.Context(), m, nil)[0]; r.GetDecision() == nil {
			t.Errorf("when there is room again: %v", r)
		}
	})
}

// TestEverySeatIsGivenBack: whatever becomes of a request.
func TestEverySeatIsGivenBack(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		m := &pb.StreamRequest{Session: 1}
		for i := range 40 { // of all groups; some admitted, some denied, some of no policy, some wrong
			r := request(fmt.Sprint("tenant", i%7), []string{"year", "burst", "none"}[i%3])
			if i%11 == 0 {
				r.Subject.Route = "nonsense"
			}
			m.Requests = append(m.Requests, r)
		}
		late, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		for _, x := range s.nodes {
			for range 3 {
				x.Decide(t.Context(), m, nil)
				n, seats := x.Enter("someone", m.Requests[1], len(m.Requests), time.Second)
				x.Decide(t.Context(), &pb.StreamRequest{Session: 1, Requests: m.Requests[:n]}, seats)
				seats.Leave()
			}
			x.Decide(late, m, nil)
		}
		s.net.Isolate("a")
		s.nodes["a"].Decide(t.Context(), m, nil)
		time.Sleep(time.Second) // until leaders that are alone know it
		s.nodes["a"].Decide(t.Context(), m, nil)
		for name, x := range s.nodes {
			for id, q := range x.view.Load().queues {
				if n := q.State().Waiting; n != 0 {
					t.Errorf("node %s, group %d: %d wait for ever", name, id, n)
				}
			}
		}
		s.net.HealAll()
		s.healthy(30 * time.Second)
	})
}

// TestMixedMessageAsksForTheSeatsItNeeds: a large message with one request for a group
// that has room for few.
func TestMixedMessageAsksForTheSeatsItNeeds(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		x := s.nodes[s.leader("t")]
		other := s.elsewhereThan("t")
		q := x.view.Load().queues[x.view.Load().state.SlotGroup[s.slot(other)]]
		most := q.State().Limit - 10
		q.Enter(x.since(), nil, most, int64(time.Hour))
		m := &pb.StreamRequest{Session: 1}
		for range 100 {
			m.Requests = append(m.Requests, request("t", "year"))
		}
		m.Requests = append(m.Requests, request(other, "year"))
		for i, r := range x.Decide(t.Context(), m, nil) {
			if r.GetDecision() == nil {
				t.Errorf("request %d: %v", i, r)
			}
		}
		if n := q.State().Refused; n != 0 {
			t.Errorf("%d were refused", n)
		}
		q.Leave(nil, most)
	})
}

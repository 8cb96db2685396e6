package transport_test

import (
	"context"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/transport"
)

// TestWhatHasNoRoomIsNotDecided also holds the order of what is and what is not.
func TestWhatHasNoRoomIsNotDecided(t *testing.T) {
	told := 0
	serve(t, transport.ServerOptions{Busy: func(time.Duration) { told++ }}, func(t *testing.T, s *served) {
		decided := 0
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			decided += len(m.Requests)
			return admit(ctx, m)
		}
		g := s.stream()
		for id, room := range []int{5, 3, 1, 0} {
			s.b.room = func(requests int) int { return min(requests, room) }
			decided, told = 0, 0
			s.send(g, &pb.StreamRequest{Id: uint64(id + 1), Requests: requests(5)})
			r := s.recv(g)
			if len(r.GetResults()) != 5 || decided != room || told > 0 != (room < 5) {
				t.Fatalf("room for %d: %d of %d results decided, told %d times", room, decided, len(r.GetResults()), told)
			}
			for i, x := range r.GetResults() {
				if busy := x.GetError().GetCode() == pb.Code_CODE_BUSY; busy != (i >= room) || busy == (x.GetDecision() != nil) {
					t.Errorf("room for %d, result %d: %v", room, i, x)
				}
			}
		}
	})
}

// TestRefusedStreamIsReadSlowly: a caller that asks again at once is not refused without end.
func TestRefusedStreamIsReadSlowly(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		s.b.room = func(int) int { return 0 }
		g := s.stream()
		begun := time.Now()
		for id := range uint64(21) {
			s.send(g, &pb.StreamRequest{Id: id + 1, Requests: requests(1)})
			s.recv(g)
		}
		if took := time.Since(begun); took != 100*time.Millisecond {
			t.Errorf("21 refusals took %v, want 20 pauses of 5 ms", took)
		}
	})
}

func TestTimeoutCountsFromReading(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		var left time.Duration
		s.b.decide = func(ctx context.Context, m *pb.StreamRequest) []*pb.Result {
			d, _ := ctx.Deadline()
			left = time.Until(d)
			return admit(ctx, m)
		}
		s.b.room = func(requests int) int { time.Sleep(300 * time.Millisecond); return requests }
		g := s.stream()
		s.send(g, &pb.StreamRequest{Id: 1, TimeoutNs: 1e9, Requests: requests(1)})
		if s.recv(g); left.Round(time.Millisecond) != 700*time.Millisecond {
			t.Errorf("%v left of a second after 300 ms", left)
		}
		s.send(g, &pb.StreamRequest{Id: 2, TimeoutNs: 2e8, Requests: requests(1)})
		if r := s.recv(g); r.GetResults()[0].GetError().GetCode() != pb.Code_CODE_DEADLINE {
			t.Errorf("after the time was up: %v", r)
		}
	})
}

// TestRefusalsHoldUpNoOther: messages of one stream are for several groups.
func TestRefusalsHoldUpNoOther(t *testing.T) {
	serve(t, transport.ServerOptions{}, func(t *testing.T, s *served) {
		s.b.room = func(requests int) int { return requests % 2 } // those of one are let in
		g := s.stream()
		id := uint64(0)
		ask := func(requestsOfIt int) {
			id++
			s.send(g, &pb.StreamRequest{Id: id, Requests: requests(requestsOfIt)})
			s.recv(g)
		}
		ask(1)
		begun := time.Now()
		for range 20 {
			ask(2)
			ask(1)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("20 messages took %v beside refusals", took)
		}
	})
}

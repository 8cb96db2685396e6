package trial

import (
	"context"
	"sync"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bench/check"
)

// lookEvery is how often the groups are looked at.
const lookEvery = 250 * time.Millisecond

// watch notes all the time which nodes vote in each group, and its new epochs, until the
// function is called that it returns; once more does nothing.
func (s *scene) watch(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup // the one goroutine
	newest := map[uint32]uint32{}
	look := func() {
		if st, err := s.fleet.Status(context.WithoutCancel(ctx)); err == nil {
			s.see(st, newest)
		}
	}
	wg.Go(func() {
		for look(); waitFor(ctx, lookEvery); {
			look()
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		look()
	})
}

// see notes what a status shows; newest has the epochs seen until now.
func (s *scene) see(st *pb.StatusResponse, newest map[uint32]uint32) {
	now := s.history.now()
	for _, g := range st.GetGroups() {
		var voters []string
		for _, m := range g.GetMembers() {
			if m.GetRole() == "voter" {
				voters = append(voters, m.GetNode())
			}
		}
		s.world.See(g.GetId(), voters)
		s.history.mu.Lock()
		for e := max(newest[g.GetId()], 1) + 1; e <= g.GetEpoch(); e++ {
			s.losses = append(s.losses, check.Loss{Group: g.GetId(), Epoch: e, Span: check.Span{To: now}})
		}
		s.history.mu.Unlock()
		newest[g.GetId()] = max(newest[g.GetId()], g.GetEpoch())
	}
}

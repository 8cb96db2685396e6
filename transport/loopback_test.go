package transport_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/ringlimit/ringlimit/transport"
)

// TestLoopback does the main things once on real sockets, and checks that nothing
// is left running.
func TestLoopback(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("nodes", func(t *testing.T) {
		f := &field{t: t, addrs: map[string]string{}}
		ns := f.mesh("a", "b", "c", "d")
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				body := fmt.Sprint(i)
				got, err := ns[i%3].Call(t.Context(), ns[(i+1)%3].name, 1, []byte(body))
				if err != nil || string(got) != body {
					t.Errorf("call: %q, %v", got, err)
				}
			})
		}
		wg.Wait()
		all := group(t, ns[:3])
		leader := f.leads(all...)
		for i := range 100 {
			commit(t, leader, fmt.Sprint(i))
		}
		forget(t, leader)
		fresh := ns[3].run(t, id("d"), nil)
		if err := leader.AddNonvoter(raft.ServerID(id("d")), raft.ServerAddress(id("d")), 0, time.Second).Error(); err != nil {
			t.Fatal(err)
		}
		f.until(func() bool { return fresh.fsm.holds() == 100 }, "installed")
		leader.stop()
		leader.peer.stop()
		next := f.leads(without(all, leader)...)
		commit(t, next, "after")
		if _, up := next.peer.Link(leader.peer.name); up {
			t.Error("link to a node that has stopped is up")
		}
	})
	goleak.VerifyNone(t, before)
}

func TestAnswersAfterTheDeadlineAreDropped(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		from, to := ns[0].Raft(id("a")), ns[1].Raft(id("b"))
		defer from.Close()
		defer to.Close()
		f.net.Delay("b", "a", 510*time.Millisecond)
		go func() {
			rpc := <-to.Consumer()
			rpc.Respond(&raft.RequestVoteResponse{Term: 1, Granted: true}, nil)
		}()
		var resp raft.RequestVoteResponse
		err := from.RequestVote("", raft.ServerAddress(id("b")), &raft.RequestVoteRequest{Term: 1}, &resp)
		if err != transport.ErrTimeout || resp.Granted {
			t.Errorf("got %v, %+v", err, resp)
		}
	})
}

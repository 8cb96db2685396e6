package transport_test

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestVotersWhoDoNotKnowEachOtherElect: one was away while another came in a third one's
// place, and then the leader is gone for good. The two are a majority.
func TestVotersWhoDoNotKnowEachOtherElect(t *testing.T) {
	for _, promoted := range []bool{false, true} { // whether it is the vote of who was away that it does not know of
		inBubble(t, func(t *testing.T, f *field) {
			ns := f.mesh("a", "b", "c", "d")
			old := []string{id("a"), id("b"), id("c")}
			all := map[string]*replica{}
			for _, n := range ns {
				ids := old
				if n.name == "d" {
					ids = nil
				}
				all[n.name] = n.run(t, id(n.name), ids)
				all[n.name].trans.Serve(all[n.name].Raft)
			}
			leader := f.leads(all["a"], all["b"], all["c"])
			rest := without([]*replica{all["a"], all["b"], all["c"]}, leader)
			away, lost, heir := rest[0], rest[1], all["d"]
			change := func(do func(raft.ServerID, raft.ServerAddress, uint64, time.Duration) raft.IndexFuture, id string) {
				t.Helper()
				if err := do(raft.ServerID(id), raft.ServerAddress(id), 0, time.Second).Error(); err != nil {
					t.Fatal(err)
				}
			}
			if promoted {
				if err := leader.DemoteVoter(raft.ServerID(away.id), 0, time.Second).Error(); err != nil {
					t.Fatal(err)
				}
				commit(t, leader, "it has no vote now, and knows")
				time.Sleep(time.Second)
			}
			f.net.Isolate(away.peer.name)
			change(leader.AddVoter, heir.id)
			if promoted {
				change(leader.AddVoter, away.id)
			}
			if err := leader.RemoveServer(raft.ServerID(lost.id), 0, time.Second).Error(); err != nil {
				t.Fatal(err)
			}
			commit(t, leader, "that is known to a majority")
			time.Sleep(time.Second)
			f.net.Kill(lost.peer.name)
			f.net.Kill(leader.peer.name)
			f.net.Heal(away.peer.name, heir.peer.name)
			f.net.Heal(heir.peer.name, away.peer.name)
			if n := f.leads(heir, away); n != heir {
				t.Errorf("%s leads, which lacks entries", n.id)
			}
			commit(t, heir, "and goes on")
		})
	}
}

// TestWhoWasRemovedAndDoesNotKnowDisturbsNobody: its pre-vote fails while there is a leader,
// and its log is too short for a vote when there is none.
func TestWhoWasRemovedAndDoesNotKnowDisturbsNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		all := group(t, f.mesh("a", "b", "c"))
		for _, r := range all {
			r.trans.Serve(r.Raft)
		}
		leader := f.leads(all...)
		removed := without(all, leader)[0]
		other := without(without(all, leader), removed)[0]
		f.net.Isolate(removed.peer.name)
		if err := leader.RemoveServer(raft.ServerID(removed.id), 0, time.Second).Error(); err != nil {
			t.Fatal(err)
		}
		commit(t, leader, "without it")
		term := leader.CurrentTerm()
		f.net.HealAll()
		time.Sleep(10 * time.Second)
		for range 5 { // nor if it is told that its leader is gone, as by nodes that lost the same links
			removed.trans.StandForElection()
			time.Sleep(3 * time.Second)
		}
		if leader.State() != raft.Leader || leader.CurrentTerm() != term {
			t.Errorf("the leader is %v, in term %d after %d", leader.State(), leader.CurrentTerm(), term)
		}
		f.net.Kill(leader.peer.name)
		time.Sleep(10 * time.Second)
		if removed.State() == raft.Leader || other.State() == raft.Leader {
			t.Error("one of two voters is dead, and one that was removed elects")
		}
	})
}

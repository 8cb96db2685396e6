package transport_test

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/transport"
)

// TestANodeThatIsBackIsNeededAtOnce: raft alone would try again up to ten seconds after a
// long cut, and the group could commit nothing meanwhile.
func TestANodeThatIsBackIsNeededAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		all := group(t, f.mesh("a", "b", "c"))
		for _, r := range all {
			r.trans.Serve(r.Raft)
		}
		first := f.leads(all...)
		rest := without(all, first)
		f.net.Isolate(rest[0].peer.name)
		for range 30 {
			commit(t, first, "while one is away")
			time.Sleep(time.Second)
		}
		f.net.HealAll()
		f.until(func() bool { _, up := first.peer.Link(rest[0].peer.name); return up }, "the link is up again")
		f.net.Kill(rest[1].peer.name)
		began := time.Now()
		commit(t, first, "with the one that was away")
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("committed after %v", took)
		}
	})
}

// TestNoSnapshotIsKeptWhileItsReceiverIsAway: it keeps memory, and is old when it is sent.
func TestNoSnapshotIsKeptWhileItsReceiverIsAway(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		from := ns[0].Raft(id("a"))
		defer from.Close()
		transport.Pretend(from, raft.Leader, 2, id("b"))
		f.net.Isolate("b")
		time.Sleep(3 * time.Second)
		var closed atomic.Bool
		done := make(chan error, 1)
		go func() {
			done <- from.InstallSnapshot("", raft.ServerAddress(id("b")), &raft.InstallSnapshotRequest{Term: 2, Size: 1},
				new(raft.InstallSnapshotResponse), opened{func() { closed.Store(true) }})
		}()
		time.Sleep(time.Minute)
		if !closed.Load() || len(done) > 0 {
			t.Errorf("closed %v, and ended %v, while b is away", closed.Load(), len(done) > 0)
		}
		f.net.HealAll()
		if err := <-done; !errors.Is(err, transport.ErrNoLink) {
			t.Errorf("when b is back: %v, want to be asked again", err)
		}
	})
}

type opened struct{ close func() }

func (opened) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
func (o opened) Close() error           { o.close(); return nil }

func TestAppendsWaitForALinkThatIsWanted(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		from := ns[0].Raft(id("a"))
		defer from.Close()
		f.net.Isolate("b")
		f.until(func() bool { _, up := ns[0].Link("b"); return !up }, "b is away")
		time.Sleep(2 * time.Second) // and its connection is given up
		send := func(term uint64) <-chan error {
			done := make(chan error, 1)
			go func() {
				done <- from.AppendEntries("", raft.ServerAddress(id("b")), &raft.AppendEntriesRequest{Term: term, PrevLogEntry: 1, PrevLogTerm: 1}, new(raft.AppendEntriesResponse))
			}()
			return done
		}
		ended := func(done <-chan error) (err error, yes bool) {
			synctest.Wait()
			select {
			case err = <-done:
				return err, true
			default:
				return nil, false
			}
		}
		waits := func(what string, done <-chan error) {
			t.Helper()
			if err, yes := ended(done); yes {
				t.Errorf("%s: it did not wait for a link: %v", what, err)
			}
		}
		gives := func(what string, done <-chan error) {
			t.Helper()
			if err, yes := ended(done); !yes || !errors.Is(err, transport.ErrNoLink) {
				t.Errorf("%s: it waits, or ended with %v", what, err)
			}
		}
		lead := func(term uint64) { transport.Pretend(from, raft.Leader, term, id("b")) }

		gives("not known who leads", send(2))
		lead(2)
		first := send(2)
		time.Sleep(time.Minute)
		waits("the link is down", first)
		lead(3)
		newer := send(3)
		time.Sleep(time.Second)
		gives("it leads again", first)
		waits("in a later term", newer)
		ns[0].SetPeers(nil)
		time.Sleep(time.Second)
		gives("nobody wants the link", newer)
		ns[0].SetPeers([]string{"b"})
		removed := send(3)
		transport.Pretend(from, raft.Leader, 3, id("c"))
		time.Sleep(time.Second)
		gives("b is not in the group any more", removed)
		lead(3)
		deposed := send(3)
		transport.Pretend(from, raft.Follower, 3, id("b"))
		f.net.HealAll()
		f.until(func() bool { _, up := ns[0].Link("b"); return up }, "b is back")
		gives("it does not lead any more", deposed)

		f.net.Isolate("b")
		time.Sleep(2 * time.Second)
		lead(4)
		last := send(4)
		waits("the link is down again", last)
		from.Release()
		if err, yes := ended(last); !yes || err == nil {
			t.Errorf("an append waits after Release, or ended with %v", err)
		}
	})
}

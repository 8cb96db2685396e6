package transport_test

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/transport"
)

// machine is a state machine that remembers what was applied.
type machine struct {
	mu  sync.Mutex
	log []string
}

func (m *machine) Apply(l *raft.Log) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = append(m.log, string(l.Data))
	return nil
}

func (m *machine) Snapshot() (raft.FSMSnapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(m.log)
	return dump(b.Bytes()), err
}

func (m *machine) Restore(r io.ReadCloser) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.log = nil
	return gob.NewDecoder(r).Decode(&m.log)
}

func (m *machine) holds() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.log)
}

type dump []byte

func (d dump) Persist(s raft.SnapshotSink) error {
	if _, err := s.Write(d); err != nil {
		return errors.Join(err, s.Cancel())
	}
	return s.Close()
}
func (dump) Release() {}

// replica is a replica of one group on a peer.
type replica struct {
	*raft.Raft
	peer  *peer
	id    string
	trans *transport.RaftTransport
	fsm   *machine
	log   *text
	stop  func()
}

// text is a log that may be read while it is written.
type text struct {
	mu sync.Mutex
	b  strings.Builder
}

func (x *text) Write(b []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(b)
}

func (x *text) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

// run starts a replica; bootstrap, if not nil, is the group's first configuration.
func (n *peer) run(t testing.TB, id string, bootstrap []string, set ...func(*raft.Config)) *replica {
	t.Helper()
	r := &replica{peer: n, id: id, fsm: &machine{}, log: &text{}, trans: n.Raft(id)}
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(id)
	cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = 500*time.Millisecond, 500*time.Millisecond, 500*time.Millisecond
	cfg.CommitTimeout = time.Second
	cfg.SnapshotInterval, cfg.SnapshotThreshold = time.Hour, 1<<40
	cfg.NoLegacyTelemetry = true
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: r.log, Level: hclog.Debug})
	for _, s := range set {
		s(cfg)
	}
	store, snaps := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
	if bootstrap != nil {
		if err := raft.BootstrapCluster(cfg, store, store, snaps, r.trans, configuration(bootstrap...)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.Raft, err = raft.NewRaft(cfg, r.fsm, store, store, snaps, r.trans); err != nil {
		t.Fatal(err)
	}
	r.stop = sync.OnceFunc(func() {
		r.trans.Close()
		if err := r.Shutdown().Error(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func configuration(ids ...string) (c raft.Configuration) {
	for _, id := range ids {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	return c
}

func id(node string) string { return node + "/1/g1/1/1" }

// group starts one replica on each peer, all voters.
func group(t testing.TB, ns []*peer, set ...func(*raft.Config)) (all []*replica) {
	t.Helper()
	var ids []string
	for _, n := range ns {
		ids = append(ids, id(n.name))
	}
	for _, n := range ns {
		all = append(all, n.run(t, id(n.name), ids, set...))
	}
	return all
}

// leads waits for a leader among the replicas.
func (f *field) leads(rs ...*replica) (leader *replica) {
	f.t.Helper()
	f.until(func() bool {
		for _, r := range rs {
			if r.State() == raft.Leader && r.VerifyLeader().Error() == nil {
				leader = r
				return true
			}
		}
		return false
	}, "leader")
	return leader
}

func commit(t testing.TB, r *replica, text string) {
	t.Helper()
	if err := r.Apply([]byte(text), time.Second).Error(); err != nil {
		t.Fatalf("commit %.20s: %v", text, err)
	}
}

func without(all []*replica, r *replica) (rest []*replica) {
	for _, x := range all {
		if x != r {
			rest = append(rest, x)
		}
	}
	return rest
}

func TestRaftElectsCommitsFailsOverAndHeals(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		all := group(t, f.mesh("a", "b", "c"))
		first := f.leads(all...)
		for i := range 100 {
			commit(t, first, fmt.Sprint(i))
		}
		rest := without(all, first)
		f.net.Isolate(first.peer.name)
		second := f.leads(rest...)
		commit(t, second, "while the first is cut off")
		f.net.HealAll()
		f.until(func() bool { return first.State() == raft.Follower && first.fsm.holds() == 101 }, "the first follows")
		f.net.Kill(second.peer.name)
		third := f.leads(without(all, second)...)
		commit(t, third, "while the second is dead")
		for _, r := range without(all, second) {
			f.until(func() bool { return r.fsm.holds() == 102 }, "%s holds all", r.id)
			if !strings.Contains(r.log.String(), "pre-vote") || strings.Contains(r.log.String(), "pre-vote is disabled") {
				t.Errorf("%s: pre-vote is off", r.id)
			}
		}
	})
}

func TestPreVoteIsOnAndSparesAHealthyLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		all := group(t, f.mesh("a", "b", "c"))
		leader := f.leads(all...)
		commit(t, leader, "x")
		term := leader.CurrentTerm()
		other := without(all, leader)[0]
		f.net.Isolate(other.peer.name)
		time.Sleep(10 * time.Second) // without pre-vote it would raise its term every second
		f.net.HealAll()
		time.Sleep(10 * time.Second)
		if leader.State() != raft.Leader || leader.CurrentTerm() != term || other.CurrentTerm() != term {
			t.Errorf("state %v, terms %d and %d, were %d", leader.State(), leader.CurrentTerm(), other.CurrentTerm(), term)
		}
		if !strings.Contains(other.log.String(), "pre-vote") {
			t.Error("no pre-vote was asked for")
		}
	})
}

func TestAnIdleGroupKeepsItsLeaderAndWritesLittle(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		all := group(t, f.mesh("a", "b", "c"))
		leader := f.leads(all...)
		commit(t, leader, "x")
		time.Sleep(time.Second)
		before, term := f.net.Written("a", "b"), leader.CurrentTerm()
		time.Sleep(time.Minute)
		if n := (f.net.Written("a", "b") - before) / 60; n < 15 || n > 30 {
			t.Errorf("%d writes a second from a to b", n)
		}
		if leader.State() != raft.Leader || leader.CurrentTerm() != term {
			t.Error("leader lost while idle")
		}
	})
}

func TestFollowersHearOfACommitAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		all := group(t, f.mesh("a", "b", "c"))
		leader := f.leads(all...)
		commit(t, leader, "first")
		f.until(func() bool { return all[0].fsm.holds()+all[1].fsm.holds()+all[2].fsm.holds() == 3 }, "the first everywhere")
		time.Sleep(5 * time.Second) // idle
		slow := without(all, leader)[0]
		f.net.Delay(leader.peer.name, slow.peer.name, 100*time.Millisecond) // it takes the entry when that is committed already
		fut := leader.Apply([]byte("second"), time.Second)
		if err := fut.Error(); err != nil {
			t.Fatal(err)
		}
		leader.trans.Committed(fut.Index())
		time.Sleep(50 * time.Millisecond)
		if n := without(all, leader)[1].fsm.holds(); n != 2 {
			t.Errorf("a follower holds %d entries 50 ms after the commit of the second", n)
		}
		time.Sleep(300 * time.Millisecond)
		if n := slow.fsm.holds(); n != 2 {
			t.Errorf("a slow follower holds %d entries", n)
		}
	})
}

func TestRequestsForAnotherReplicaAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		from := ns[0].Raft("a/1/g1/1/1")
		defer from.Close()
		to := ns[1].Raft("b/2/g1/1/1") // b's second life
		old := raft.ServerAddress("b/1/g1/1/1")
		var vote raft.RequestVoteResponse
		var pre raft.RequestPreVoteResponse
		var app raft.AppendEntriesResponse
		var snap raft.InstallSnapshotResponse
		for name, err := range map[string]error{
			"vote":      from.RequestVote("", old, &raft.RequestVoteRequest{Term: 1}, &vote),
			"pre-vote":  from.RequestPreVote("", old, &raft.RequestPreVoteRequest{Term: 1}, &pre),
			"heartbeat": from.AppendEntries("", old, &raft.AppendEntriesRequest{Term: 1}, &app),
			"append":    from.AppendEntries("", old, &raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 1}, &app),
			"transfer":  from.TimeoutNow("", old, nil, &raft.TimeoutNowResponse{}),
			"snapshot": from.InstallSnapshot("", old, &raft.InstallSnapshotRequest{
				Term: 1, SnapshotVersion: 1, Configuration: raft.EncodeConfiguration(configuration("x")),
			}, &snap, bytes.NewReader(nil)),
		} {
			if err == nil || !strings.Contains(err.Error(), "unknown replica b/1/g1/1/1") || strings.Contains(err.Error(), "unexpected command") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(to.Consumer()) != 0 {
			t.Error("delivered")
		}
		to.Close()
		err := from.RequestVote("", "b/2/g1/1/1", &raft.RequestVoteRequest{Term: 1}, &vote)
		if err == nil || !strings.Contains(err.Error(), "unknown replica") {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestRaftWithoutALinkFailsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a, b := f.start("a"), f.start("b")
		from := a.Raft(id("a"))
		defer from.Close()
		began := time.Now()
		ask := func() error {
			return from.RequestVote("", raft.ServerAddress(id("b")), &raft.RequestVoteRequest{Term: 1}, &raft.RequestVoteResponse{})
		}
		if err := ask(); !errors.Is(err, transport.ErrNoLink) || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		f.until(func() bool { _, up := b.Link("a"); return up }, "a link is made on demand")
		if err := ask(); err == nil || !strings.Contains(err.Error(), "unknown replica") {
			t.Errorf("then: %v", err)
		}
	})
}

func TestAReplicaThatDoesNotKeepUpHoldsUpNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		from := ns[0].Raft(id("a"))
		stuck := ns[1].Raft(id("b")) // nobody reads its Consumer
		defer from.Close()
		defer stuck.Close()
		var wg sync.WaitGroup
		var mu sync.Mutex
		full, late := 0, 0
		for range 200 {
			wg.Go(func() {
				err := from.RequestVote("", raft.ServerAddress(id("b")), &raft.RequestVoteRequest{Term: 1}, &raft.RequestVoteResponse{})
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, transport.ErrTimeout):
					late++
				case err != nil && strings.Contains(err.Error(), "does not keep up"):
					full++
				default:
					t.Errorf("unexpected: %v", err)
				}
			})
		}
		synctest.Wait()
		if _, err := ns[0].Call(t.Context(), "b", 1, nil); err != nil {
			t.Errorf("call: %v", err)
		}
		wg.Wait()
		if late != 64 || full != 136 {
			t.Errorf("%d late, %d refused", late, full)
		}
	})
}

func TestAppendsAreCutAtOneMegabyte(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b", "c")
		all := group(t, ns)
		leader := f.leads(all...)
		away := without(all, leader)[0]
		f.net.Isolate(away.peer.name)
		for i := range 40 {
			commit(t, leader, strings.Repeat(string(rune('a'+i%26)), 400_000))
		}
		f.net.HealAll()
		f.until(func() bool { return away.fsm.holds() == 40 }, "caught up")
	})
}

// forget makes the leader take a snapshot and drop its log.
func forget(t *testing.T, r *replica) {
	t.Helper()
	if err := r.ReloadConfig(raft.ReloadableConfig{
		TrailingLogs: 1, SnapshotInterval: time.Hour, SnapshotThreshold: 1 << 40,
		HeartbeatTimeout: 500 * time.Millisecond, ElectionTimeout: 500 * time.Millisecond,
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotIsInstalledOverTheLink(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b", "c", "d")
		all := group(t, ns[:3])
		leader := f.leads(all...)
		for range 10 {
			commit(t, leader, strings.Repeat("s", 300_000))
		}
		forget(t, leader)
		fresh := ns[3].run(t, id("d"), nil)
		if err := leader.AddNonvoter(raft.ServerID(id("d")), raft.ServerAddress(id("d")), 0, time.Second).Error(); err != nil {
			t.Fatal(err)
		}
		f.until(func() bool { return fresh.fsm.holds() == 10 }, "installed")
		commit(t, leader, "after")
		f.until(func() bool { return fresh.fsm.holds() == 11 }, "goes on with the log")
		if !strings.Contains(fresh.log.String(), "Installed remote snapshot") {
			t.Error("not by a snapshot")
		}
	})
}

func TestASnapshotCutInTheMiddleIsSentAgain(t *testing.T) {
	for name, fault := range map[string]func(*field){
		"cut":      func(f *field) { f.net.Isolate("d") },
		"one way":  func(f *field) { f.net.Cut("d", "a"); f.net.Cut("d", "b"); f.net.Cut("d", "c") },
		"no fault": func(*field) {},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, f *field) {
				ns := f.mesh("a", "b", "c", "d")
				all := group(t, ns[:3])
				leader := f.leads(all...)
				for range 20 {
					commit(t, leader, strings.Repeat("s", 400_000))
				}
				forget(t, leader)
				for _, n := range []string{"a", "b", "c"} {
					f.net.Delay(n, "d", 5*time.Millisecond)
					f.net.Delay("d", n, 5*time.Millisecond)
				}
				fresh := ns[3].run(t, id("d"), nil)
				add := leader.AddNonvoter(raft.ServerID(id("d")), raft.ServerAddress(id("d")), 0, time.Second)
				if err := add.Error(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(40 * time.Millisecond)
				if fresh.fsm.holds() != 0 {
					t.Fatal("installed before the fault")
				}
				fault(f)
				time.Sleep(20 * time.Second)
				f.net.HealAll()
				f.until(func() bool { return fresh.fsm.holds() == 20 }, "installed")
				commit(t, leader, "after")
				f.until(func() bool { return fresh.fsm.holds() == 21 }, "goes on")
			})
		})
	}
}

func TestStandForElectionTakesOverWithoutWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		all := group(t, f.mesh("a", "b", "c"))
		leader := f.leads(all...)
		commit(t, leader, "x")
		next := without(all, leader)[0]
		f.until(func() bool { return next.LastIndex() == leader.LastIndex() }, "has the whole log")
		f.net.Kill(leader.peer.name)
		began := time.Now()
		if !next.trans.StandForElection() {
			t.Fatal("no room")
		}
		f.until(func() bool { return next.State() == raft.Leader }, "takes over")
		commit(t, next, "y")
		if took := time.Since(began); took > 20*time.Millisecond {
			t.Errorf("served again after %v", took)
		}
	})
}

func TestLeadershipIsTransferred(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		all := group(t, f.mesh("a", "b", "c"))
		leader := f.leads(all...)
		commit(t, leader, "x")
		next := without(all, leader)[1]
		if err := leader.LeadershipTransferToServer(raft.ServerID(next.id), raft.ServerAddress(next.id)).Error(); err != nil {
			t.Fatal(err)
		}
		f.until(func() bool { return next.State() == raft.Leader }, "transferred")
		commit(t, next, "y")
	})
}

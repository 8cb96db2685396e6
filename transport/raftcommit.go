package transport

import (
	"context"

	"github.com/hashicorp/raft"
)

// A follower hears that an entry is committed with the next entry, or after raft's
// CommitTimeout. Where that is calm, so that an idle group writes little, and
// followers wait for what was committed, Committed tells them at once: it costs a
// message, not an entry of its own in everybody's log.

// follower is what is known of another replica's log, from the appends it took.
type follower struct {
	term      uint64 // of the leader that appended
	index     uint64 // newest entry that it is known to share with that leader …
	entryTerm uint64 // … and the entry's term
	commit    uint64 // what it was told to be committed
	beingTold bool
}

// Committed tells all followers that the entry at index, and those before it, are
// committed. It does not wait, and is a matter of speed alone: what is lost raft
// tells them later. The caller has seen the entry committed while it led.
func (t *RaftTransport) Committed(index uint64) {
	t.commits.Lock()
	defer t.commits.Unlock()
	t.committed = max(t.committed, index)
	for target, f := range t.followers {
		t.tell(target, f)
	}
}

// appended notes an append that a follower took.
func (t *RaftTransport) appended(target raft.ServerAddress, a *raft.AppendEntriesRequest) {
	t.commits.Lock()
	defer t.commits.Unlock()
	f := t.followers[target]
	if f == nil {
		f = &follower{}
		t.followers[target] = f
	}
	f.term, f.index, f.entryTerm = a.Term, a.PrevLogEntry, a.PrevLogTerm
	if n := len(a.Entries); n > 0 {
		f.index, f.entryTerm = a.Entries[n-1].Index, a.Entries[n-1].Term
	}
	f.commit = max(f.commit, a.LeaderCommitIndex)
	t.tell(target, f)
}

// tell sends a follower an append without entries, if there is something to tell.
// The caller holds commits.
// The index it names is one that the follower shares with the leader: beyond that
// its log may hold what another leader began.
func (t *RaftTransport) tell(target raft.ServerAddress, f *follower) {
	commit := min(t.committed, f.index)
	if f.beingTold || commit <= f.commit {
		return
	}
	args := &raft.AppendEntriesRequest{
		RPCHeader: header(t.self), Leader: t.self,
		Term: f.term, PrevLogEntry: f.index, PrevLogTerm: f.entryTerm, LeaderCommitIndex: commit,
	}
	f.beingTold, f.commit = true, commit
	started := t.p.spawn(func(context.Context) {
		var resp raft.AppendEntriesResponse
		_ = t.ask(target, kindAppend, now, raftTimeout, &resp, func(b []byte) []byte { return appendAppend(b, args) })
		t.commits.Lock()
		defer t.commits.Unlock()
		f.beingTold = false
		t.tell(target, f)
	})
	if !started {
		f.beingTold = false
	}
}

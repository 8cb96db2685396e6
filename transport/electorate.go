package transport

import (
	"slices"

	"github.com/hashicorp/raft"
)

// impartial lets a request for a vote be judged by term and log alone, as Raft does
// (Ongaro's thesis, section 4.1: a server grants its vote to a candidate that is not in its
// configuration, and so does one that has no vote by its own). Raft 1.8.0 refuses it.
// But who was away while its group changed does not know the newest voters, and where
// their leader is gone for good, its vote may be the one that they need: the group would
// have no leader any more, though a majority lives.
//
// Raft judges a vote without a candidate's ID by the rest, and a pre-vote by whose ID
// it carries: here that of some voter. That a leader is known counts for such a candidate
// however it came to stand, so that a replica that was removed and does not know disturbs
// nobody.
func (t *RaftTransport) impartial(command any) {
	if t.raft.Load() == nil {
		return
	}
	switch r := command.(type) {
	case *raft.RequestVoteRequest:
		if all := t.electorate(); !slices.Contains(all, string(r.ID)) {
			r.ID, r.LeadershipTransfer = nil, false
		}
	case *raft.RequestPreVoteRequest:
		if all := t.electorate(); len(all) > 0 && !slices.Contains(all, string(r.ID)) {
			r.ID = []byte(all[0])
		}
	}
}

// electorate is the voters of the newest configuration in the log, committed or not.
func (t *RaftTransport) electorate() (ids []string) {
	for _, s := range t.servers() {
		if s.Suffrage == raft.Voter {
			ids = append(ids, string(s.ID))
		}
	}
	return ids
}

// servers is that configuration; nil: it is not known.
func (t *RaftTransport) servers() []raft.Server {
	r := t.raft.Load()
	if r == nil {
		return nil
	}
	f := (*r).GetConfiguration()
	if f.Error() != nil {
		return nil
	}
	return f.Configuration().Servers
}

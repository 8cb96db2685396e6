package group

import (
	"slices"
	"sync"

	"github.com/hashicorp/raft"
)

// view is what others read about the table without waiting for an entry.
type view struct {
	index, term   uint64
	chain         uint64
	time          int64
	buckets, held int
	records       int
	confAt        uint64
	servers       *servers
}

// servers is a configuration, never changed once made.
type servers struct {
	voters, nonVoters []string
}

func newServers(c raft.Configuration) *servers {
	s := &servers{}
	for _, srv := range c.Servers {
		if srv.Suffrage == raft.Voter {
			s.voters = append(s.voters, string(srv.ID))
		} else {
			s.nonVoters = append(s.nonVoters, string(srv.ID))
		}
	}
	return s
}

func (s *servers) voter(id string) bool    { return slices.Contains(s.voters, id) }
func (s *servers) nonVoter(id string) bool { return slices.Contains(s.nonVoters, id) }

// viewHolder keeps the newest view.
type viewHolder struct {
	mu   sync.Mutex // guards the rest; held to copy v
	v    view
	past history
}

func (h *viewHolder) load() view {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.v
}

// publish makes the present state readable. The caller holds f.mu.
func (f *fsm) publish() {
	h := &f.view
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.v.servers == nil || h.v.confAt != f.confAt {
		h.v.servers, h.v.confAt = newServers(f.conf), f.confAt
	}
	h.v.index, h.v.term = f.index, f.term
	h.v.chain, h.v.time = f.table.Chain(), f.table.Time()
	h.v.buckets, h.v.held, h.v.records = f.table.Buckets(), f.table.HeldCount(), f.table.Records()
	h.past.add(f.index, h.v.chain)
}

package transport

import "github.com/hashicorp/raft"

// Links is how many other nodes this one keeps in mind.
func (p *Peers) Links() int { return len(p.all()) }

// Hello is what a node that calls itself from begins a connection to another with.
func Hello(from, target string) []byte {
	return hello{purpose: forLink, from: From{Node: from, Incarnation: "1"}, target: target}.append(nil)
}

// Bulks counts the connections for calls that carry much: idle ones of this side, and
// those that it serves.
func (p *Peers) Bulks() (idle, served int) {
	p.bulk.mu.Lock()
	defer p.bulk.mu.Unlock()
	for _, list := range p.bulk.idle {
		idle += len(list)
	}
	return idle, int(p.bulksServed.Load())
}

// Pretend makes t believe that its raft is in that state and term, in a group of others.
func Pretend(t *RaftTransport, state raft.RaftState, term uint64, others ...string) {
	t.serve(pretended{state, term, others})
}

type pretended struct {
	state  raft.RaftState
	term   uint64
	others []string
}

func (p pretended) State() raft.RaftState                      { return p.state }
func (p pretended) CurrentTerm() uint64                        { return p.term }
func (p pretended) GetConfiguration() raft.ConfigurationFuture { return p }
func (pretended) Error() error                                 { return nil }
func (pretended) Index() uint64                                { return 1 }

func (p pretended) Configuration() (c raft.Configuration) {
	for _, id := range p.others {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id)})
	}
	return c
}

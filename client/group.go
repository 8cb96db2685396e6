package client

import (
	"sync/atomic"

	"github.com/ringlimit/ringlimit/api/route"
	"github.com/ringlimit/ringlimit/client/internal/fallback"
)

// A group is what the client knows of one raft group: who leads it, and whether
// it answers. The group nowhere stands for requests whose home the client
// cannot tell; any node takes those.
type group struct {
	id      uint32
	nowhere bool

	lane     atomic.Pointer[lane] // where its takes go; nil: ask Client.place
	epoch    atomic.Uint32
	term     atomic.Uint64   // of the leader, the highest seen
	failing  atomic.Bool     // calls of it are decided here, and it has not answered since
	outage   fallback.Outage // guarded by Client.outageMu
	answered atomic.Int64    // client time of its newest decision, also of a call that was given up
	down     atomic.Bool     // the last answer was that it cannot decide now

	// Guarded by Client.mu.
	leader string // gRPC address; empty: not known
	hinted bool   // leader comes from a NOT_LEADER, not from a routing
	parked parked // takes that wait until it can decide
	probe  pause  // while down, when the next parked take tries again
}

// open returns the lane for new takes; nil: they must wait, or look closer.
func (g *group) open() *lane {
	if g.down.Load() {
		return nil
	}
	return g.lane.Load()
}

// table is an immutable routing: slot → group.
type table struct {
	hash  route.Hash
	home  []string
	slots []*group
}

// parked is calls that wait, oldest first.
type parked struct {
	calls []*call
	prune int // length at which abandoned ones are swept out
}

func (p *parked) add(k *call) {
	p.calls = append(p.calls, k)
	if len(p.calls) <= max(p.prune, 1024) {
		return
	}
	live := p.calls[:0]
	for _, k := range p.calls {
		if k.live() {
			live = append(live, k)
		}
	}
	clear(p.calls[len(live):])
	p.calls, p.prune = live, 2*len(live)
}

// next takes the oldest call that somebody still waits for; nil if there is none.
func (p *parked) next() *call {
	for len(p.calls) > 0 {
		k := p.calls[0]
		p.calls[0] = nil
		p.calls = p.calls[1:]
		if k.live() {
			return k
		}
	}
	return nil
}

// take takes all.
func (p *parked) take() []*call {
	calls := p.calls
	p.calls = nil
	return calls
}

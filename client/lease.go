package client

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/api/wire"
)

// leases spends tokens that were handed to this client, for keys of leased policies. A
// decision from a lease asks nobody; it is also given while the cluster is out of reach,
// until the lease is void.
//
// That a key is leased its first answers say. From then on it has a holding, and while
// it is asked for often enough, leases: the next is asked for before the last is spent,
// one at a time. Whoever finds nothing left asks the cluster as ever, and nobody waits
// for a lease. One goroutine, keep, looks at all of them now and then while there are any.
type leases struct {
	client  *Client
	session uint64 // names leases with a sequence: theirs end later than those of calls
	counts  leaseCounts

	sequence atomic.Uint64
	acks     acks
	busy     chan struct{} // a place for each return under way

	held atomic.Int64   // holdings: without any, nobody looks
	asks sync.WaitGroup // asks and returns under way; none begins when closed, but for those of close

	mu      sync.RWMutex // guards what follows; held for map operations
	keys    map[string]*holding
	keeping bool // keep runs
	closed  bool
}

// leaseCounts are units, and leases asked for.
type leaseCounts struct {
	asked, spent, granted, returned, expired atomic.Uint64
}

const (
	maxHoldings = 10_000          // keys; more are decided by the cluster each time
	holdingIdle = 5 * time.Second // without a call, and a key is forgotten
	maxUnits    = wire.MaxCost
)

func newLeases(c *Client) *leases {
	return &leases{client: c, session: max(1, rand.Uint64()), keys: map[string]*holding{}, busy: make(chan struct{}, maxReturns)}
}

// leasable says whether a request can be decided from a lease at all. Those of their own
// id, cost by policy or with a question about the log are the cluster's alone.
func (r *Request) leasable() bool {
	return r.RequestID == "" && !r.Look && !r.Witness && len(r.Costs) == 0 && r.Cost >= 0 && r.Cost <= maxUnits
}

// spend decides r from a lease, if enough is held of its key.
func (l *leases) spend(r *Request) (d Decision, ok bool) {
	if l.held.Load() == 0 || !r.leasable() {
		return Decision{}, false
	}
	var stack [512]byte
	h := l.find(r.appendSubject(stack[:0]))
	if h == nil {
		return Decision{}, false
	}
	cost := max(r.Cost, 1)
	d, ok, ask, void := h.want(l.client.now(), cost)
	if void != nil {
		l.over(void)
	}
	if ask > 0 {
		l.start(func() { l.ask(h, ask) }, func() { h.refuse(l.client.now(), leasePause) })
	}
	if ok {
		l.counts.spent.Add(1)
		l.client.counts.requests.Add(1)
	}
	return d, ok
}

// spendAll decides those of a batch that it can, perhaps all; nil: none was looked at.
func (l *leases) spendAll(requests []Request, results []Result) (decided []bool, all bool) {
	if l.held.Load() == 0 {
		return nil, false
	}
	decided, all = make([]bool, len(requests)), true
	for i := range requests {
		results[i].Decision, decided[i] = l.spend(&requests[i])
		all = all && decided[i]
	}
	return decided, all
}

func (l *leases) find(key []byte) *holding {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.keys[string(key)]
}

// hint notes that the policies of a request which the cluster has decided are leased.
func (l *leases) hint(r *Request) {
	if !r.leasable() {
		return
	}
	var stack [512]byte
	key := r.appendSubject(stack[:0])
	if l.find(key) != nil {
		return
	}
	h := &holding{key: string(key), grants: make([]grant, 0, maxGrants)}
	var k call
	k.keep(&Request{Tenant: r.Tenant, Principals: r.Principals, Route: r.Route, Plan: r.Plan, Region: r.Region, Attributes: r.Attributes})
	h.request, h.last = k.request, l.client.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.keys) >= maxHoldings || l.keys[h.key] != nil {
		return
	}
	l.keys[h.key] = h
	l.held.Store(int64(len(l.keys)))
	if !l.keeping {
		l.keeping = true
		l.client.running.Go(l.keep)
	}
}

// forget drops a key; its leases must be over.
func (l *leases) forget(h *holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys[h.key] == h {
		delete(l.keys, h.key)
		l.held.Store(int64(len(l.keys)))
	}
}

// start runs f in the background, or refuse at once if the client is closed.
func (l *leases) start(f, refuse func()) {
	l.mu.RLock()
	if !l.closed {
		l.asks.Add(1)
	}
	closed := l.closed
	l.mu.RUnlock()
	if closed {
		refuse()
		return
	}
	go func() {
		defer l.asks.Done()
		f()
	}()
}

// Package client asks a ringlimit cluster whether a caller may spend this much now.
//
//	c, err := client.New([]string{"10.0.0.1:7600", "10.0.0.2:7600"})
//	…
//	d, err := c.Decide(ctx, client.Request{Tenant: "acme", Route: "GET:/v1/items"})
//	if err != nil { … }            // no answer; see package fault for the kinds
//	if !d.Allowed { … d.RetryAfter … } // a denial is an answer
//
// One Client serves a whole process: it keeps one connection to each node,
// learns from any of them which node leads the group of each request, sends
// straight there, and gathers concurrent calls into few messages without ever
// waiting for more of them.
//
// A call is charged once, however often it has to be sent: every copy carries
// the same id. When the leader of its group is lost or refuses, the call waits
// for the next leader and goes once more to each, until its context's deadline,
// or for 2 s if that has none. What it cannot get by then is an error of kind
// fault.Deadline, which is also context.DeadlineExceeded; it may have been
// charged unless the error says that it was never sent. Only a leader that is
// busy is retried sparingly, for at most a tenth of all calls.
//
// Where all policies that apply are leased, a key that is asked for often is decided from
// tokens that the client takes in advance and holds for a second at most: such a
// Decision says so in Leased, and asked nobody.
//
// When the cluster cannot answer in time, a call is decided here, by the failure mode
// of each policy that applies: at once while every node refuses connections, else
// after the time that the policies wait. Such a Decision says so in Degraded and
// FailureMode, and is counted; see WithMeterProvider. That needs the policies, which
// the client learns from the cluster in its first moments, or from a file, see
// WithPolicyCache. Without them, and with NeverDegrade, such a call is an error.
package client

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client/internal/fallback"
)

// Client decides through a cluster. It is safe for concurrent use.
type Client struct {
	options options
	session uint64 // random; with a sequence it names a request
	start   time.Time
	ctx     context.Context // done when closed
	cancel  context.CancelFunc
	running sync.WaitGroup // two goroutines of each node, clock, and probes

	sequence atomic.Uint64
	acks     acks
	calls    sync.Pool // of *single
	batches  sync.Pool // of *batch
	budget   *budget
	counts   counters
	denials  *denials
	leases   *leases
	flying   atomic.Int64 // messages in flight
	asleep   atomic.Bool  // the clock waits for a nudge
	nudge    chan struct{}
	table    atomic.Pointer[table] // nil: no routing yet

	// What a client decides by that does not reach the cluster.
	rules          atomic.Pointer[fallback.Rules] // nil: only the cluster decides
	share          atomic.Pointer[fallback.Share] // never nil
	decider        *fallback.Decider
	secret         [16]byte      // random; keys the buckets of decider
	unreached      atomic.Bool   // every node refuses connections; written with mu held
	unreachedSince atomic.Int64  // client time; 0: it is not so
	found          chan struct{} // a node is up; capacity 1
	outageMu       sync.Mutex    // guards group.outage; held for a few assignments
	meters         *meters
	kept, saved    kept      // used by New and prepare only, as savedAt
	savedAt        time.Time // zero: not yet
	saveFailed     time.Time // when writing the file did; zero: never

	mu       sync.Mutex // guards what follows, and what groups and calls say; taken before node.mu
	view     view
	nodes    map[string]*node // by address
	order    []*node          // the same, to choose from
	turn     int              // which of them is asked first
	groups   map[uint32]*group
	nowhere  *group
	delayed  []delayed
	probed   int64 // client time of the last probe
	probing  bool
	isClosed bool
	lastLoss error // why no node is reached at present, for people; nil: one is, or none was tried
}

var errClosed = fault.New(fault.Unavailable, "client is closed")

// New returns a client that knows the gRPC addresses of one or more nodes and
// finds the others by itself. It does not block: connections are made in the
// background, and calls wait for them. Close ends it.
func New(addrs []string, opts ...Option) (*Client, error) {
	if len(addrs) == 0 {
		return nil, fault.New(fault.InvalidArgument, "no addresses, want at least one HOST:PORT")
	}
	c := &Client{
		options: defaults(), session: max(1, rand.Uint64()), start: time.Now(), budget: newBudget(),
		nudge: make(chan struct{}, 1), nodes: map[string]*node{}, groups: map[uint32]*group{},
		nowhere: &group{nowhere: true}, decider: fallback.NewDecider(), found: make(chan struct{}, 1),
	}
	binary.LittleEndian.PutUint64(c.secret[:], rand.Uint64())
	binary.LittleEndian.PutUint64(c.secret[8:], rand.Uint64())
	c.calls.New = func() any { return newSingle() }
	c.batches.New = func() any { return new(batch) }
	for _, o := range opts {
		o(&c.options)
	}
	if c.options.timeout <= 0 {
		return nil, fault.New(fault.InvalidArgument, "default timeout %v, want a positive one", c.options.timeout)
	}
	if most := c.options.memory; most < 0 || most > mostMemory {
		return nil, fault.New(fault.InvalidArgument, "denials are remembered for %v, want 0 … %v", most, mostMemory)
	}
	if err := c.secure(); err != nil {
		return nil, err
	}
	c.denials, c.leases = newDenials(c.options.memory), newLeases(c)
	if err := c.prepareFirst(); err != nil {
		return nil, err
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.running.Go(c.clock)
	if !c.options.neverDegrade {
		c.running.Go(c.prepare)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn = rand.IntN(len(addrs))
	for _, addr := range addrs {
		if _, err := c.node(addr, true); err != nil {
			c.cancel()
			return nil, fmt.Errorf("address %q: %w", addr, err)
		}
	}
	return c, nil
}

// Close returns what is left of leases, for which it takes half a second at most, and
// ends all calls, with fault.Unavailable, or with fault.OutcomeUnknown where a
// copy was sent and may have been charged. It returns when nothing of the
// client runs any more. It may be called twice.
func (c *Client) Close() error {
	c.leases.close()
	c.mu.Lock()
	c.isClosed = true
	c.mu.Unlock()
	c.cancel()
	c.running.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range c.groups {
		c.failAll(g.parked.take(), errClosed)
	}
	c.failAll(c.nowhere.parked.take(), errClosed)
	for _, d := range c.delayed {
		c.fail(d.call, errClosed)
	}
	c.delayed = nil
	return nil
}

// now is the time since the client was made, in ns.
func (c *Client) now() int64 { return int64(time.Since(c.start)) }

// Decide answers one request. The error is of a kind of package fault: at the
// deadline fault.Deadline, InvalidArgument for a request that no node would
// take, Busy for a cluster that is overloaded, and so on.
func (c *Client) Decide(ctx context.Context, r Request) (Decision, error) {
	if err := reason(ctx); err != nil {
		return Decision{}, c.gaveUp(err, false, nil)
	}
	if d, ok := c.leases.spend(&r); ok {
		return d, nil
	}
	k, err := c.newCall(ctx, &r)
	if err != nil {
		return Decision{}, err
	}
	c.send(&k.call)
	c.wait(ctx, &k.call)
	err = c.outcome(&k.call)
	d := k.answer
	if k.leased {
		c.leases.hint(&r)
	}
	c.recycle(k)
	return d, err
}

// skips ends a call before it is placed, if no node can be reached and the client knows
// what to do then.
func (c *Client) skips(k *call) bool {
	if !c.unreached.Load() || k.began == 0 || c.ctx.Err() != nil {
		return false
	}
	c.fail(k, errUnreached)
	return true
}

// outcome is what the caller of a call that has ended is told: what then stands in
// k.decision, or the error. The caller's goroutine calls it, once: nobody else writes
// there any more.
func (c *Client) outcome(k *call) error {
	switch {
	case k.err != nil && k.began != 0:
		d, err := c.instead(k)
		*k.decision = d
		return err
	case k.decision.Degraded:
		c.countDegraded(k.decision.FailureMode, becauseFull)
	case k.err == nil && !k.decision.Allowed && !k.decision.Remembered:
		c.rememberDenial(k)
	}
	return k.err
}

// wait returns when k has ended: by an answer, by the clock, or because ctx has.
func (c *Client) wait(ctx context.Context, k *call) {
	ended := ctx.Done()
	if ended == nil {
		<-k.done // cheaper than a select
		return
	}
	select {
	case <-k.done:
	case <-ended:
		c.abandon(k, reason(ctx))
	}
}

// abandon gives k up, unless its answer came at the same moment.
func (c *Client) abandon(k *call, why error) {
	if !k.settle(abandoned) {
		<-k.done
		return
	}
	k.err = c.gaveUpOn(k, why)
	c.acks.end(k.ends())
}

// newCall makes a call of a request.
func (c *Client) newCall(ctx context.Context, r *Request) (*single, error) {
	t := c.terms(ctx)
	k := c.calls.Get().(*single)
	if err := k.begin(r, &t); err != nil {
		return nil, err
	}
	if r.numbered() {
		k.seq = c.sequence.Add(1)
	}
	c.began(1)
	return k, nil
}

// send places a new call: straight into its lane if all is well.
func (c *Client) send(k *call) {
	if c.skips(k) || c.recalls(k) {
		return
	}
	if l := k.group.open(); l != nil && l.put(k, true) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.place(k)
}

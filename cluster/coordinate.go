package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/decision"
	"github.com/ringlimit/ringlimit/policy"
)

// A request whose limits live in several groups has a coordinator: the leader of
// its home's group. It takes from the home group first, then from the others at
// once; when one of them denies, what the rest took is undone, and the stored
// result of the request becomes a denial. Every group keeps its part under the
// request's own id, so that a retry after any crash finds what was done and goes
// on: until then a charge may stand, which is stricter and never looser.

// A part is one slot, not one group: which slots share a group changes, and a copy
// that comes after that must find each part where it was kept.

// reach is the part of a request that one other slot decides.
type reach struct {
	request group.Request
	outcome group.Outcome
	err     error
}

// far returns the hits of request k that its home's entry did not decide. For a
// copy the stored answers say what was decided then, wherever the slots were: a
// slot that came to the home's group since was asked on its own, and one that has
// left it was not.
func (p *part) far(k int, code bucket.Code, answers []bucket.Answer) []policy.Hit {
	hits, near, home := p.hits[k], p.near[k], p.requests[k].Home
	if code != bucket.Repeated {
		return hits[near:]
	}
	if near == len(hits) && !slices.ContainsFunc(hits, func(h policy.Hit) bool { return h.Slot != home }) {
		return nil
	}
	var far []policy.Hit
	for i := range hits {
		h := &hits[i]
		if h.Slot != home && !slices.ContainsFunc(answers, func(a bucket.Answer) bool { return a.Rule.Policy == h.Rule.Policy }) {
			far = append(far, *h)
		}
	}
	return far
}

// spread takes the parts of a request that its home's entry did not decide, after
// home admitted it. The answers of all are then given as one.
func (n *Node) spread(ctx context.Context, home *group.Request, hits []policy.Hit) (far []*reach, err error) {
	for i := range hits {
		h := &hits[i]
		k := slices.IndexFunc(far, func(r *reach) bool { return r.request.Home == h.Slot })
		if k < 0 {
			k = len(far)
			far = append(far, &reach{request: group.Request{
				Request:      bucket.Request{Home: h.Slot, ID: home.ID},
				FirstAttempt: home.FirstAttempt,
			}})
		}
		far[k].request.Takes = append(far[k].request.Takes, decision.Take(h))
	}
	var wg sync.WaitGroup
	for _, r := range far {
		wg.Go(func() { r.err = n.askSlot(ctx, &r.request, &r.outcome) })
	}
	wg.Wait()
	final := false // some slot will never admit this id
	for _, r := range far {
		switch code := r.code(); {
		case r.err != nil: // home has charged, so this is not one of "nothing was charged"
			err = fault.New(fault.OutcomeUnknown, "admitted at home, and slot %d: %v", r.request.Home, r.err)
		case code == bucket.PolicyStale:
			err = fault.New(fault.PolicyStale, "the group of slot %d holds newer policies", r.request.Home)
		case code != bucket.Admitted && code != bucket.Repeated:
			final = true
		}
	}
	if !final {
		return far, err // of an error: a retry with the same id goes on from here
	}
	n.undo(ctx, home, far)
	return far, nil
}

func (r *reach) code() bucket.Code {
	if r.err != nil || len(r.outcome.Results.Items) == 0 {
		return bucket.NotHeld
	}
	return r.outcome.Results.Items[0].Code
}

// undo gives back what a request took at home and in the slots that admitted it.
func (n *Node) undo(ctx context.Context, home *group.Request, far []*reach) {
	// The decision is made: what it must give back does not end with its caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	debts := []uint16{home.Home}
	for _, r := range far {
		if code := r.code(); r.err != nil || code == bucket.Admitted || code == bucket.Repeated {
			debts = append(debts, r.request.Home)
		}
	}
	var wg sync.WaitGroup
	for _, slot := range debts {
		wg.Go(func() {
			req := group.Request{Request: bucket.Request{Op: bucket.OpUndo, Home: slot, ID: home.ID}}
			var out group.Outcome
			for {
				err := n.askSlot(ctx, &req, &out)
				if err == nil {
					return
				}
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
					n.metrics.undone.Inc()
					n.log.Warn("a charge stands: its group did not take it back in time", "slot", slot, "error", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// temporaryID names a request that its caller did not name, so that it can be undone.
func temporaryID(content uint64) bucket.ID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return bucket.ID{
		Kind: bucket.OwnID, Content: content,
		Own: bucket.Key{Hi: binary.LittleEndian.Uint64(b[:]), Lo: binary.LittleEndian.Uint64(b[8:]) | 1},
	}
}

// askSlot decides one request whose takes are all in its home slot, in the group
// that holds the slot: it waits while the slot is on its way. An error, also that it
// is still not held when ctx ends, means that nothing was charged, unless its kind
// says otherwise.
func (n *Node) askSlot(ctx context.Context, r *group.Request, out *group.Outcome) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, elsewhereWait)
		defer cancel()
	}
	slots, req := []uint16{r.Home}, *r
	begun := time.Now()
	for {
		v := n.view.Load()
		err := n.askGroup(ctx, v, v.state.SlotGroup[r.Home], []group.Request{req}, out)
		if err == nil && out.Results.Items[0].Code != bucket.NotHeld {
			return nil
		}
		if err != nil && (!errors.Is(err, fault.NotLeader) || n.view.Load() == v) {
			return err
		}
		if err := n.awaitHolder(ctx, v, slots, false); err != nil {
			return err
		}
		if req.ID.AgeNanos = r.ID.AgeNanos; req.ID.Kind == bucket.ClientID {
			req.ID.AgeNanos += uint64(time.Since(begun))
		}
	}
}

// askGroup decides requests in one group: here if this node leads it, else at
// the node that does.
func (n *Node) askGroup(ctx context.Context, v *view, id uint32, reqs []group.Request, out *group.Outcome) error {
	if replica := v.replicas[id]; replica != nil && replica.Serving() {
		err := replica.Take(ctx, reqs, out)
		if !errors.Is(err, fault.NotLeader) {
			return err
		}
	}
	c, ok := n.table.leader(id)
	if _, up := n.peers.Link(c.node); !ok || c.node == n.self.name || !up {
		return fault.New(fault.NoLeader, "group %d has no leader within reach", id)
	}
	g, _ := v.state.Group(id)
	body, err := json.Marshal(groupCall{Group: id, Epoch: g.Epoch, Requests: reqs})
	if err != nil {
		return fault.New(fault.Internal, "%v", err)
	}
	body, err = n.peers.Call(ctx, c.node, methodGroup, body)
	switch {
	case errors.Is(err, fault.Unavailable):
		return fault.New(fault.NoLeader, "the last known leader, %s, is out of reach: %v", c.node, err)
	case err != nil:
		return err
	}
	var a groupAnswer
	if err := json.Unmarshal(body, &a); err != nil || len(a.Results.Items) != len(reqs) {
		return fault.New(fault.OutcomeUnknown, "answer of %s: %v", c.node, err)
	}
	*out = group.Outcome{Results: a.Results, Uncommitted: a.Uncommitted, Index: a.Index, Applied: a.Applied, First: a.First, Term: a.Term, Time: a.Time}
	return nil
}

// groupCall is requests that are already matched, for the leader of one group.
type groupCall struct {
	Group, Epoch uint32
	Requests     []group.Request
}

type groupAnswer struct {
	Results     bucket.Results
	Uncommitted []bool
	Index, Term uint64
	Applied     uint64
	First       int
	Time        int64
}

// handleGroup answers a groupCall of another node.
func (n *Node) handleGroup(ctx context.Context, body []byte) ([]byte, error) {
	var c groupCall
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fault.New(fault.InvalidArgument, "%v", err)
	}
	v := n.view.Load()
	if !v.placed() {
		return nil, fault.New(fault.NotReady, "node %s knows no placement yet", n.self.name)
	}
	var slots []uint16
	for i := range c.Requests {
		slots = slotsOf(slots, &c.Requests[i].Request)
	}
	for _, slot := range slots {
		if int(slot) >= len(v.state.SlotGroup) {
			return nil, fault.New(fault.InvalidArgument, "slot %d of %d", slot, len(v.state.SlotGroup))
		}
	}
	if here, held := v.holder(slots); here && !held {
		wait, cancel := context.WithTimeout(ctx, remoteWait)
		_ = n.awaitHolder(wait, v, slots, true)
		cancel()
		v = n.view.Load()
	}
	g, ok := v.state.Group(c.Group)
	replica := v.replicas[c.Group]
	if !ok || g.Epoch != c.Epoch || replica == nil {
		return nil, fault.Leader(n.hint(v, c.Group))
	}
	var out group.Outcome
	if err := replica.Take(ctx, c.Requests, &out); err != nil {
		return nil, err
	}
	return json.Marshal(groupAnswer{out.Results, out.Uncommitted, out.Index, out.Term, out.Applied, out.First, out.Time})
}

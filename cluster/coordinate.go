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

// reach is the part of a request that one other group decides.
type reach struct {
	group   uint32
	request group.Request
	hits    []policy.Hit
	outcome group.Outcome
	err     error
}

// spread takes the parts of a request that lie outside its home group, after
// home admitted it. The answers of all are then given as one.
func (n *Node) spread(ctx context.Context, v *view, p *part, k int) (far []*reach, err error) {
	home := &p.requests[k]
	for _, h := range p.hits[k][p.near[k]:] {
		g := v.state.SlotGroup[h.Slot]
		i := slices.IndexFunc(far, func(r *reach) bool { return r.group == g })
		if i < 0 {
			far = append(far, &reach{group: g, request: group.Request{
				Request:      bucket.Request{Home: h.Slot, ID: home.ID},
				FirstAttempt: home.FirstAttempt,
			}})
			i = len(far) - 1
		}
		r := far[i]
		r.request.Takes = append(r.request.Takes, decision.Take(&h))
		r.hits = append(r.hits, h)
	}
	var wg sync.WaitGroup
	for _, r := range far {
		wg.Go(func() { r.err = n.askGroup(ctx, v, r.group, []group.Request{r.request}, &r.outcome) })
	}
	wg.Wait()
	final := false // some group will never admit this id
	for _, r := range far {
		switch code := r.code(); {
		case r.err != nil:
			err = r.err
		case code == bucket.PolicyStale:
			err = fault.New(fault.PolicyStale, "group %d holds newer policies", r.group)
		case code != bucket.Admitted && code != bucket.Repeated:
			final = true
		}
	}
	if !final {
		return far, err // of an error: a retry with the same id goes on from here
	}
	n.undo(ctx, v, p.group, home, far)
	return far, nil
}

func (r *reach) code() bucket.Code {
	if r.err != nil || len(r.outcome.Results.Items) == 0 {
		return bucket.NotHeld
	}
	return r.outcome.Results.Items[0].Code
}

// undo gives back what a request took at home and in the groups that admitted it.
func (n *Node) undo(ctx context.Context, v *view, homeGroup uint32, home *group.Request, far []*reach) {
	// The decision is made: what it must give back does not end with its caller.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	type debt struct {
		group uint32
		slot  uint16
	}
	debts := []debt{{homeGroup, home.Home}}
	for _, r := range far {
		if code := r.code(); r.err != nil || code == bucket.Admitted || code == bucket.Repeated {
			debts = append(debts, debt{r.group, r.request.Home})
		}
	}
	var wg sync.WaitGroup
	for _, d := range debts {
		wg.Go(func() {
			req := []group.Request{{Request: bucket.Request{Op: bucket.OpUndo, Home: d.slot, ID: home.ID}}}
			var out group.Outcome
			for {
				err := n.askGroup(ctx, v, d.group, req, &out)
				if err == nil {
					return
				}
				select {
				case <-time.After(20 * time.Millisecond):
				case <-ctx.Done():
					n.metrics.undone.Inc()
					n.log.Warn("a charge stands: its group did not take it back in time", "group", d.group, "error", err)
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
	*out = group.Outcome{Results: a.Results, Uncommitted: a.Uncommitted, Index: a.Index, Term: a.Term, Time: a.Time}
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
	g, ok := v.state.Group(c.Group)
	replica := v.replicas[c.Group]
	if !ok || g.Epoch != c.Epoch || replica == nil {
		return nil, fault.Leader(n.hint(v, c.Group))
	}
	var out group.Outcome
	if err := replica.Take(ctx, c.Requests, &out); err != nil {
		return nil, err
	}
	return json.Marshal(groupAnswer{out.Results, out.Uncommitted, out.Index, out.Term, out.Time})
}

package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/control"
)

const (
	// salvageWait is how long a new epoch waits for nodes that have not told what they
	// have of its slots. After that it goes on with what is there, so that a slot is
	// out of service for a bounded time.
	salvageWait  = 5 * time.Second
	offerTimeout = time.Second      // at least, for a node to read its checkpoints
	readTimeout  = 20 * time.Second // of one chunk; the first of a source makes a copy of a replica, or reads a file
	maxLate      = 4                // steps of the lead loop that may pass without one slot, before a source is given up
	salvageBatch = 32               // slots that are owned by one entry
)

// salvager lets the slots of one new epoch begin from what is left of them. Used by
// the lead loop of one replica only.
type salvager struct {
	term   uint64 // of the leadership that the rest is about
	begun  time.Time
	heard  map[string][]offer // by node that has answered
	ranked map[uint16][]source
	passes uint64 // begun in this process
	late   int    // steps that ended while a slot was read, since one was whole
}

// source is one place to have a slot from.
type source struct {
	node, kind, name string
	own              bool // it is of the same group
	offeredSlot
}

// newer orders sources of one slot, the best first: what has seen the newest move
// of the slot, then what its own group has, then by the log; a replica before a file.
func newer(a, b source) int {
	first := func(yes bool) int {
		if yes {
			return -1
		}
		return 1
	}
	switch {
	case a.Revision != b.Revision:
		return cmp.Compare(b.Revision, a.Revision)
	case a.own != b.own:
		return first(a.own)
	case a.Term != b.Term:
		return cmp.Compare(b.Term, a.Term)
	case a.Index != b.Index:
		return cmp.Compare(b.Index, a.Index)
	case a.kind != b.kind:
		return cmp.Compare(b.kind, a.kind)
	}
	return cmp.Compare(a.node, b.node)
}

// stepEpoch lets slots begin whose state was lost with the last epoch: salvaged, if
// any policy wants that and anything is left of them, else without what they held.
func (n *Node) stepEpoch(ctx context.Context, x *hosted, s *control.State, g control.Group, term uint64) error {
	restoring := g.Restoring
	if lost := notIn(g.Births, restoring); len(lost) > 0 {
		g.Births, restoring = lost, nil // first, because they need not wait for a file
	}
	if !salvages(s.Policies) && restoring == nil {
		return n.stepBirths(ctx, x, g)
	}
	v := &x.steps.salvager
	if v.term != term {
		*v = salvager{term: term, begun: time.Now(), heard: make(map[string][]offer), passes: v.passes}
	}
	if v.ranked == nil && !n.hearOffers(ctx, v, s, g) {
		return nil
	}
	left, err := n.salvageSlots(ctx, x, v, g)
	if err != nil || left == 0 {
		return err
	}
	if restoring != nil {
		v.term = 0 // all nodes are asked again
		return fault.New(fault.NotReady, "%d slots wait for backup %s: start a node with --restore and that file", left, s.Backup)
	}
	return n.stepBirths(ctx, x, g)
}

// notIn returns the slots that are not among others, which are in order.
func notIn(slots, others []uint16) []uint16 {
	return slices.DeleteFunc(slices.Clone(slots), func(slot uint16) bool {
		_, ok := slices.BinarySearch(others, slot)
		return ok
	})
}

// hearOffers asks the nodes that have not answered yet, and says whether enough is
// known to begin.
func (n *Node) hearOffers(ctx context.Context, v *salvager, s *control.State, g control.Group) bool {
	ctx, cancel := context.WithTimeout(ctx, max(offerTimeout, salvageWait-time.Since(v.begun)))
	defer cancel()
	asked := slices.DeleteFunc(s.Registered(), func(name string) bool {
		_, heard := v.heard[name]
		return heard
	})
	var mu sync.Mutex // guards heard and silent
	var wg sync.WaitGroup
	silent := len(asked)
	for _, name := range asked {
		wg.Go(func() {
			offers, err := n.askOffers(ctx, name, g)
			if err != nil {
				n.log.Debug("a node does not tell yet what it has of lost slots", "node", name, "group", g.ID, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			v.heard[name] = offers
			silent--
		})
	}
	wg.Wait()
	if silent > 0 && time.Since(v.begun) < salvageWait {
		return false
	}
	v.rank(g)
	n.log.Info("slots of a new epoch are salvaged", "group", g.ID, "epoch", g.Epoch, "slots", len(g.Births), "found", len(v.ranked), "silent nodes", silent)
	return true
}

func (n *Node) askOffers(ctx context.Context, node string, g control.Group) (offers []offer, err error) {
	body := encodeCall(offerCall{Version: salvageVersion, Group: g.ID, Epoch: g.Epoch})
	answer, err := n.peers.CallBulk(ctx, node, methodOffers, body)
	if err != nil {
		return nil, err
	}
	return offers, json.Unmarshal(answer, &offers)
}

// rank puts all that was offered in order.
func (v *salvager) rank(g control.Group) {
	v.ranked = make(map[uint16][]source)
	for node, offers := range v.heard {
		for _, o := range offers {
			for _, slot := range o.Slots {
				v.ranked[slot.Slot] = append(v.ranked[slot.Slot], source{node, o.Kind, o.Name, o.Group == g.ID, slot})
			}
		}
	}
	for _, list := range v.ranked {
		slices.SortFunc(list, newer)
	}
}

// salvageSlots has slots adopted and owned until ctx ends or none is left that can
// be. left is how many have to begin without.
func (n *Node) salvageSlots(ctx context.Context, x *hosted, v *salvager, g control.Group) (left int, err error) {
	var complete []bucket.Move
	own := func() error {
		if len(complete) == 0 {
			return nil
		}
		_, err := x.replica.Own(ctx, complete)
		complete = complete[:0]
		n.views.fire()
		return err
	}
	for _, slot := range g.Births {
		m := bucket.Move{Slot: slot, Revision: g.BirthRevision}
		info, ok := x.replica.Slot(slot)
		switch {
		case !ok:
			return 0, fault.NotLeader
		case info.State == bucket.SlotHeld:
			continue
		case info.State == bucket.SlotComplete && info.Revision == m.Revision:
		case !n.salvageSlot(ctx, x, v, m):
			if ctx.Err() != nil {
				return 0, errors.Join(own(), ctx.Err())
			}
			left++
			continue
		}
		if complete = append(complete, m); len(complete) == salvageBatch {
			if err := own(); err != nil {
				return 0, err
			}
		}
	}
	if err := own(); err != nil {
		return 0, err
	}
	if left > 0 {
		return left, nil
	}
	return 0, n.propose(ctx, control.Born{Group: g.ID, Epoch: g.Epoch, Slots: g.Births})
}

// salvageSlot has one slot adopted from its best source that can be read. Those that
// cannot are not tried again.
func (n *Node) salvageSlot(ctx context.Context, x *hosted, v *salvager, m bucket.Move) bool {
	for len(v.ranked[m.Slot]) > 0 {
		src := v.ranked[m.Slot][0]
		err := n.adoptFrom(ctx, x, v, m, src)
		if err == nil {
			n.metrics.salvaged.WithLabelValues(src.kind).Inc()
			v.late = 0
			return true
		}
		if ctx.Err() != nil {
			if v.late++; v.late < maxLate {
				return false // it is tried again: a copy that was being made is there then
			}
			v.late = 0
		}
		n.log.Warn("a slot cannot be salvaged from there", "group", x.parsed.Group, "slot", m.Slot, "node", src.node, "source", src.name, "error", err)
		v.ranked[m.Slot] = v.ranked[m.Slot][1:]
		if ctx.Err() != nil {
			return false
		}
	}
	return false
}

// adoptFrom has all chunks of a slot adopted.
func (n *Node) adoptFrom(ctx context.Context, x *hosted, v *salvager, m bucket.Move, src source) error {
	v.passes++
	c := readCall{
		Version: salvageVersion, Kind: src.kind, Name: src.name, Slot: m.Slot, Reader: "epoch " + x.id,
		Whole: src.kind == fromBackup, Pass: v.term<<24 | v.passes&(1<<24-1),
	}
	for ; ; c.Number++ {
		a, received, err := n.readFrom(ctx, src.node, c)
		if err != nil {
			return err
		}
		if a.chunk != nil {
			done, info, err := x.replica.Adopt(ctx, m, a.slotTime, received, a.chunk)
			if err != nil {
				return err
			}
			if info.State == bucket.SlotComplete && info.Revision == m.Revision {
				return nil // by an entry whose outcome was not known then, perhaps
			}
			if !done {
				return fmt.Errorf("chunk %d is refused: the slot is %s, revision %d, pass %d, chunk %d is next", c.Number, info.State, info.Revision, info.Pass, info.Next)
			}
		}
		if a.last {
			return nil
		}
	}
}

// readFrom reads one chunk from a node, which may be this one. received is when it
// was there.
func (n *Node) readFrom(ctx context.Context, node string, c readCall) (a readAnswer, received time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	body, err := n.peers.CallBulk(ctx, node, methodRead, encodeCall(c))
	if err != nil {
		return a, received, err
	}
	received = n.cfg.Seams.Now()
	a, err = parseReadAnswer(body)
	if err == nil && len(a.chunk) > 0 {
		var info bucket.ChunkInfo
		if info, err = bucket.ParseChunk(a.chunk); err == nil && info.Slot != c.Slot {
			err = fmt.Errorf("a chunk of slot %d instead of %d", info.Slot, c.Slot)
		}
	}
	if len(a.chunk) == 0 {
		a.chunk = nil
	}
	return a, received, err
}

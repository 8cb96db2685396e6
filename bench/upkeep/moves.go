package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/api/route"
	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/client"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// lasting has buckets that are not full again for days, one per tenant, but for
// callers of the plan keys one per api key: all those of a tenant are in one slot.
const lasting = `home: [tenant]
policies:
  - {id: tenants, match: {}, scope: [tenant], family: one, algorithm: token_bucket, amount: 1, window: 240h, burst: 1000}
  - {id: keys, match: {plan: keys}, scope: [tenant, api_key], family: one, algorithm: token_bucket, amount: 1, window: 240h, burst: 1000}
`

const (
	manyTenants = "many-" // prefix of tenants with one bucket each
	oneTenant   = "one"   // has all its keys in one slot
	measured    = 10 * time.Second
	movedIn     = 3 * time.Minute
)

// measureMoves fills very many buckets, in many slots and in one, and under load of
// half the capacity lets a fourth node join, then drains the owner of the large
// slot: how long do callers wait before and meanwhile?
func measureMoves(ctx context.Context, b *bench) error {
	if err := b.fill(ctx); err != nil {
		return err
	}
	if err := b.filled(ctx); err != nil {
		return err
	}
	rate := b.rate
	if rate == 0 {
		var err error
		if rate, err = b.half(ctx); err != nil {
			return err
		}
	}
	t, err := b.startTraffic(ctx, rate)
	if err != nil {
		return err
	}
	defer t.stop()
	before, err := b.still(ctx, t, "three nodes, nothing moves")
	if err != nil {
		return err
	}
	joined, err := b.moving(ctx, t, "a fourth node joins", func() error {
		_, err := b.fleet.Add("--enable-pprof")
		return err
	})
	if err != nil {
		return err
	}
	after, err := b.still(ctx, t, "four nodes, nothing moves")
	if err != nil {
		return err
	}
	var gone *fleet.Node
	drained, err := b.moving(ctx, t, "the owner of the large slot is drained", func() (err error) {
		gone, err = b.ownerOf(ctx, t.large)
		if err != nil {
			return err
		}
		go func() { _, _, _ = b.fleet.Command(ctx, "drain", gone.Name) }() // what it does is watched
		return nil
	})
	if err != nil {
		return err
	}
	b.processors("drain")
	records := t.stop()
	b.show(records, t.large, before, after, joined, drained)
	b.showParts(ctx, gone)
	return t.failed()
}

// still is a time in which no slot moves.
func (b *bench) still(ctx context.Context, t *traffic, what string) (window, error) {
	if err := pause(ctx, measured); err != nil {
		return window{}, err
	}
	now := t.now()
	return window{what, now - measured, now}, nil
}

// half measures what the cluster decides for callers that ask as fast as they can.
func (b *bench) half(ctx context.Context) (float64, error) {
	c, err := client.New(b.fleet.GRPC(), client.NeverDegrade())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	r, err := load.Run(ctx, c, load.Config{
		Duration: measured / 2, Concurrency: hastyCallers, Batch: 1, Keys: b.keys, Cost: 1, Timeout: 2 * time.Second, TenantPrefix: manyTenants,
	})
	if err != nil {
		return 0, err
	}
	b.say("  %d callers that do not pause are decided %.0f/s, p99 %.1f ms, %d errors", hastyCallers, r.Rate, float64(r.P99)/1e3, r.Errors)
	return r.Rate / 2, nil
}

// moving begins something and waits until it has moved slots and none is left to
// move. The window is the time in which any did.
func (b *bench) moving(ctx context.Context, t *traffic, what string, begin func() error) (window, error) {
	ctx, cancel := context.WithTimeout(ctx, movedIn)
	defer cancel()
	w := window{what: what}
	was, err := b.routing(ctx)
	if err != nil {
		return w, err
	}
	if err := begin(); err != nil {
		return w, err
	}
	idle := 0
	for idle < 20 || slices.Equal(was.GetSlotGroups(), mustSlots(b.routing(ctx))) {
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return w, fmt.Errorf("%s: it has not moved what it should: %w", what, err)
		}
		st, err := b.fleet.Status(ctx)
		switch {
		case err != nil:
			continue // the node asked may be the one that leaves
		case len(st.GetMoves()) == 0 && st.GetMovesWaiting() == 0:
			idle++
			continue
		}
		idle, w.to = 0, t.now()
		if w.from == 0 {
			w.from = w.to
		}
	}
	now, err := b.routing(ctx)
	if err != nil {
		return w, err
	}
	moved := 0
	for slot, g := range now.GetSlotGroups() {
		if g != was.GetSlotGroups()[slot] {
			moved++
		}
	}
	b.say("  %s: %d of %d slots moved in %.1f s", what, moved, len(now.GetSlotGroups()), (w.to - w.from).Seconds())
	return w, nil
}

// mustSlots are the slots' groups, none if they are not known.
func mustSlots(r *pb.Routing, err error) []uint32 {
	if err != nil {
		return nil
	}
	return r.GetSlotGroups()
}

// routing asks which group has each slot.
func (b *bench) routing(ctx context.Context) (*pb.Routing, error) {
	err := fmt.Errorf("no node runs")
	for _, n := range b.fleet.Nodes {
		conn, e := n.Dial()
		if e != nil {
			return nil, e
		}
		one, cancel := context.WithTimeout(ctx, 2*time.Second)
		r, e := pb.NewLimiterClient(conn).GetRouting(one, &pb.GetRoutingRequest{})
		cancel()
		_ = conn.Close()
		if err = e; err == nil {
			return r, nil
		}
	}
	return nil, fmt.Errorf("routing: %w", err)
}

// hash tells the slot of a tenant.
func (b *bench) hash(ctx context.Context) (func(tenant string) uint16, error) {
	r, err := b.routing(ctx)
	if err != nil {
		return nil, err
	}
	h, ok := route.New(r.GetRoutingKey(), int(r.GetSlots()))
	if !ok {
		return nil, fmt.Errorf("routing with a key of %d bytes, %d slots", len(r.GetRoutingKey()), r.GetSlots())
	}
	return func(tenant string) uint16 { return h.Slot(route.Append(nil, tenant)) }, nil
}

// ownerOf finds the node that owns a slot.
func (b *bench) ownerOf(ctx context.Context, slot uint16) (*fleet.Node, error) {
	r, err := b.routing(ctx)
	if err != nil {
		return nil, err
	}
	st, err := b.fleet.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range st.GetGroups() {
		if g.GetId() == r.GetSlotGroups()[slot] {
			if n := b.fleet.Node(g.GetOwner()); n != nil {
				return n, nil
			}
		}
	}
	return nil, fmt.Errorf("slot %d has no owner that runs", slot)
}

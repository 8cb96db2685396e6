package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// haltFor is how long a leader stands still amid the moves of its slots: long
// enough for another to lead, and for what it had sent to be late.
const haltFor = 3 * time.Second

// endOf is the group at one end of a move.
type endOf struct {
	name  string
	group func(*pb.MoveStatus) uint32
}

var endsOfMoves = []endOf{{"source", (*pb.MoveStatus).GetFrom}, {"target", (*pb.MoveStatus).GetTo}}

// playStopSource lets a node join and drains it again, and each time stops the
// leader at one end of the moves while they are under way.
func playStopSource(ctx context.Context, a *arena, rounds int) error {
	t := a.startTraffic(ctx)
	before, err := a.layout(ctx)
	for i := 0; i < rounds && err == nil; i++ {
		err = a.haltAmidMoves(ctx, i, before)
	}
	if err != nil {
		t.load.stop()
		return err
	}
	t.stop(ctx, "over all rounds")
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("at the end", differ...)
	return err
}

// haltAmidMoves is one round. Where a node joins, one end is that node's group
// alone; where it is drained, the other end is.
func (a *arena) haltAmidMoves(ctx context.Context, round int, before layout) error {
	end := endsOfMoves[round%len(endsOfMoves)]
	n, err := a.fleet.Add()
	if err != nil {
		return err
	}
	where := fmt.Sprintf("round %d, node %s", round+1, n.Name)
	tested := 0
	for _, change := range []struct {
		name string
		do   func(where string) error
	}{
		{"joins", func(where string) error { return a.complete(ctx, where, grownIn) }},
		{"drained", func(where string) error {
			if err := a.drain(ctx, where, n); err != nil {
				return err
			}
			return a.complete(ctx, where, healthyIn)
		}},
	} {
		where := where + " " + change.name
		halting, done := context.WithCancel(ctx)
		halted := make(chan halt, 1)
		go func() { halted <- a.haltLeader(halting, end) }()
		err := change.do(where)
		done()
		h := <-halted
		if err = errors.Join(err, h.err); err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		a.say("%s: %v", where, h)
		if h.under == 0 {
			a.report.doubt("%s: %v", where, h)
		} else {
			tested++
		}
		now, err := a.layout(ctx)
		if err != nil {
			return err
		}
		a.report.violate(where, checkEpochs(before, now)...)
		a.report.violate(where, checkBalance(now, now.nodes)...)
	}
	if tested == 2 {
		a.report.Rounds++
	}
	return nil
}

// halt is what became of stopping a leader.
type halt struct {
	end   string
	node  string
	group uint32
	under int // moves of its group that were under way when it stood still
	err   error
}

func (h halt) String() string {
	if h.node == "" {
		return "no move was seen"
	}
	return fmt.Sprintf("node %s, leader of the %s, stopped with %d moves of group %d under way", h.node, h.end, h.under, h.group)
}

// haltLeader waits for a move, stops the leader at one end of it for a while, and
// lets it go on. It ends early with ctx, and always leaves the leader running.
func (a *arena) haltLeader(ctx context.Context, end endOf) halt {
	h := halt{end: end.name}
	var leader *fleet.Node
	for leader == nil {
		if pause(ctx, 10*time.Millisecond) != nil {
			return h
		}
		st, err := a.fleet.Status(ctx)
		if err != nil {
			continue
		}
		h.group, leader = a.leaderAt(st, end)
	}
	h.node = leader.Name
	if h.err = leader.Pause(); h.err != nil {
		return h
	}
	if st, err := a.fleet.StatusWithout(ctx, leader); err == nil {
		for _, m := range st.GetMoves() {
			if end.group(m) == h.group {
				h.under++
			}
		}
	}
	_ = pause(ctx, haltFor)
	h.err = leader.Resume()
	return h
}

// leaderAt returns the leader of a group at one end of a move that is under way.
func (a *arena) leaderAt(st *pb.StatusResponse, end endOf) (group uint32, leader *fleet.Node) {
	for _, m := range st.GetMoves() {
		if m.GetPhase() != "copying" {
			continue
		}
		for _, g := range st.GetGroups() {
			if g.GetId() == end.group(m) && g.GetLeader() != "" {
				return g.GetId(), a.fleet.Node(g.GetLeader())
			}
		}
	}
	return 0, nil
}

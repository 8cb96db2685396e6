package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/control"
)

// balance is how even a placement is.
type balance struct {
	Nodes         int     `json:"nodes"`
	MaxSlots      int     `json:"max_slots"`
	MinSlots      int     `json:"min_slots"`
	SlotsToMean   float64 `json:"slots_to_mean"` // MaxSlots through the mean
	MaxReplicas   int     `json:"max_replicas"`
	MinReplicas   int     `json:"min_replicas"`
	State         int     `json:"state_bytes"`   // of a snapshot of the control state
	Commands      int     `json:"commands"`      // of the control log since the last of these
	CommandBytes  int     `json:"command_bytes"` // in it
	Moved         int     `json:"moved"`         // slots that changed their group since
	Mean          int     `json:"mean"`          // slots of a node: so many must move when one comes or goes
	ReplicaSteps  int     `json:"replica_steps"` // replicas that were made
	Revisions     uint64  `json:"revisions"`     // of the placement: so often clients are told
	Plans         int     `json:"plans"`
	LongestPlan   float64 `json:"longest_plan"` // seconds
	PlanningTotal float64 `json:"planning"`     // seconds
}

// simulation is a cluster that is made, gets one node more, loses it by a drain, and
// loses another by death.
type simulation struct {
	Slots   int     `json:"slots"`
	Made    balance `json:"made"`
	Joined  balance `json:"joined"`
	Drained balance `json:"drained"`
	Removed balance `json:"removed"`
}

// simulate runs the product's own state machine and planner; groups do at once what
// they are asked to.
func simulate(nodes, slots int) (simulation, error) {
	out := simulation{Slots: slots}
	c := &cluster{m: control.New()}
	found := control.Found{
		ClusterID: "capacity", Secret: make([]byte, 16), RoutingKey: make([]byte, 16), Slots: slots, Expect: nodes, Voters: 5,
	}
	if err := c.apply(found); err != nil {
		return out, err
	}
	for i := range nodes {
		if err := c.join(i); err != nil {
			return out, err
		}
	}
	for _, step := range []struct {
		at *balance
		do func() error
	}{
		{&out.Made, func() error { return nil }},
		{&out.Joined, func() error { return c.join(nodes) }},
		{&out.Drained, func() error { return c.apply(control.Drain{Name: name(nodes)}) }},
		{&out.Removed, func() error { return c.apply(control.Remove{Name: name(0)}) }},
	} {
		before := c.m.State()
		if err := step.do(); err != nil {
			return out, err
		}
		if err := c.settle(); err != nil {
			return out, err
		}
		*step.at = c.balance(before)
	}
	return out, nil
}

func name(i int) string { return fmt.Sprintf("node-%05d", i) }

// balance judges the present placement, and what led here from another.
func (c *cluster) balance(before *control.State) balance {
	s := c.m.State()
	members := s.Members()
	b := balance{
		Nodes: len(members), State: len(c.m.Snapshot()), Revisions: s.Revision - before.Revision,
		Mean: s.Slots / max(len(members), len(before.Members())), MinSlots: s.Slots, MinReplicas: len(s.Groups),
		Commands: c.commands, CommandBytes: c.bytes, Plans: c.plans,
		LongestPlan: c.longest.Seconds(), PlanningTotal: c.planning.Seconds(), ReplicaSteps: c.replicas, Moved: c.moves,
	}
	slots := map[string]int{}
	for _, g := range s.Groups {
		slots[g.Owner] += s.CountSlots(g.ID)
	}
	for _, n := range members {
		r := s.CountReplicas(n)
		b.MaxSlots, b.MinSlots = max(b.MaxSlots, slots[n]), min(b.MinSlots, slots[n])
		b.MaxReplicas, b.MinReplicas = max(b.MaxReplicas, r), min(b.MinReplicas, r)
	}
	b.SlotsToMean = float64(b.MaxSlots) * float64(len(members)) / float64(s.Slots)
	c.commands, c.bytes, c.plans, c.replicas, c.moves, c.longest, c.planning = 0, 0, 0, 0, 0, 0, 0
	return b
}

func (r simulation) text() string {
	var w strings.Builder
	fmt.Fprintf(&w, "%d slots\n", r.Slots)
	for _, x := range r.rows() {
		b := x.balance
		fmt.Fprintf(&w, "%-8s %d nodes: slots %d … %d, most %.2f × the mean; replicas %d … %d; %d slots moved, a node has %d in the mean; %d replicas made; "+
			"%d commands, %s; placement changed %d times; state %s; %d plans, longest %s, all %s\n",
			x.what, b.Nodes, b.MinSlots, b.MaxSlots, b.SlotsToMean, b.MinReplicas, b.MaxReplicas, b.Moved, b.Mean, b.ReplicaSteps,
			b.Commands, inBytes(float64(b.CommandBytes)), b.Revisions, inBytes(float64(b.State)), b.Plans,
			time.Duration(b.LongestPlan*1e9).Round(time.Millisecond), time.Duration(b.PlanningTotal*1e9).Round(time.Millisecond))
	}
	return w.String()
}

// stage is one balance with its name.
type stage struct {
	what string
	balance
}

func (r simulation) rows() []stage {
	return []stage{{"made", r.Made}, {"joined", r.Joined}, {"drained", r.Drained}, {"removed", r.Removed}}
}

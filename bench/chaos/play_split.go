package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

const (
	leaseOver  = 1500 * time.Millisecond // a leader without a majority knows it by then
	oneGossip  = 45 * time.Second        // until healed halves are one cluster again
	splitDepth = 4                       // looks at each group from the wrong side
)

// playSplit cuts five nodes into two and three. Each group has a majority on one
// side: it serves there, and on the other nobody may answer for it.
func playSplit(ctx context.Context, a *arena, rounds int) error {
	for i := range rounds {
		t := a.startTraffic(ctx)
		err := t.split(ctx, i)
		if err != nil {
			t.load.stop()
			return err
		}
		t.stop(ctx, fmt.Sprintf("round %d", i+1))
		a.report.Rounds++
	}
	differ, err := a.fleet.WaitEqual(ctx, 20*time.Second)
	a.report.violate("at the end", differ...)
	return err
}

// split is one round: cut, ask on both sides, heal.
func (t *traffic) split(ctx context.Context, round int) error {
	a, where := t.a, fmt.Sprintf("round %d", round+1)
	before, err := a.layout(ctx)
	if err != nil {
		return err
	}
	probes, err := a.probes(ctx, "wide")
	if err != nil {
		return err
	}
	few, many, cut := a.halves(before, round)
	if cut == 0 {
		a.report.doubt("%s: no leader is cut off from its majority", where)
	}
	start := time.Now()
	if err := a.fleet.Part(names(few), false); err != nil {
		return err
	}
	outage, unserved := a.served(ctx, probes, start)
	if unserved != nil {
		a.report.violate(where, unserved.Error())
	} else if outage > servedIn {
		a.report.violate(where, fmt.Sprintf("all slots were served after %v, want at most %v", outage, servedIn))
	}
	a.report.show("all slots served", "%v after the cut from %d of %d leaders", outage.Round(time.Millisecond), cut, len(probes))
	err = pause(ctx, leaseOver-time.Since(start))
	if err == nil {
		a.report.violate(where, askBothSides(ctx, before, probes, few, many)...)
		err = pause(ctx, a.lasting(90*time.Second, 6*time.Second)-time.Since(start))
	}
	if healed := a.fleet.Part(names(few), true); err == nil {
		err = healed
	}
	if err != nil {
		return err
	}
	took, err := a.healthyWithin(ctx, where+", healed", oneGossip)
	if err != nil {
		return err
	}
	a.report.show("one cluster again", "%v after the healing", took.Round(time.Millisecond))
	return a.unmoved(ctx, where, before)
}

// halves takes two of the nodes, in each round others, so that the leaders of as
// many groups as possible are cut off from their majority; cut is how many.
func (a *arena) halves(l layout, round int) (few, many []*fleet.Node, cut int) {
	nodes := a.fleet.Nodes
	for i := range nodes {
		x, y := nodes[i], nodes[(i+1+round%2)%len(nodes)]
		n := 0
		for id, replicas := range l.replicas {
			side := 0
			for _, r := range replicas {
				if r == x.Name || r == y.Name {
					side++
				}
			}
			led := l.leaders[id] == x.Name || l.leaders[id] == y.Name
			if led == (2*side < len(replicas)) {
				n++
			}
		}
		if few == nil || n > cut {
			few, cut = []*fleet.Node{x, y}, n
		}
	}
	for _, n := range nodes {
		if !slices.Contains(few, n) {
			many = append(many, n)
		}
	}
	return few, many, cut
}

// askBothSides looks at every group from the nodes that cannot reach its majority:
// no look may be answered, as each goes through the log.
func askBothSides(ctx context.Context, l layout, probes map[uint32]key, sides ...[]*fleet.Node) (broken []string) {
	for _, side := range sides {
		for group, k := range probes {
			here := 0
			for _, r := range l.replicas[group] {
				if slices.Contains(names(side), r) {
					here++
				}
			}
			if 2*here > len(l.replicas[group]) {
				continue
			}
			for i := range splitDepth {
				n := side[i%len(side)]
				short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				d, err := direct(short, n, k, 0)
				cancel()
				if err == nil {
					broken = append(broken, fmt.Sprintf("node %s, on the side %s, answered for group %d, which is on %v: %v",
						n.Name, strings.Join(names(side), ""), group, l.replicas[group], d))
				}
			}
		}
	}
	return broken
}

func names(nodes []*fleet.Node) []string {
	var s []string
	for _, n := range nodes {
		s = append(s, n.Name)
	}
	return s
}

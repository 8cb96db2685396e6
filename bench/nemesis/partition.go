package nemesis

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// blocked is one direction of one link that a partition cuts.
type blocked struct {
	from, to string
	plane    fleet.Plane
}

// plan chooses what a partition cuts: the nodes are in random order, the preferred
// one first. It says what that is, for a person.
type plan func(nodes []string) (cuts []blocked, what string)

// partition cuts links until it is stopped. The first node of its plan is claimed.
type partition struct {
	whole
	plan plan
	cuts []blocked
	node *fleet.Node
}

func cutter(p plan) func(*World) Nemesis {
	return func(w *World) Nemesis { return &partition{whole: whole{w}, plan: p} }
}

func (p *partition) Start(ctx context.Context) (string, error) {
	first, err := p.w.claim(1, p.w.leading(ctx))
	if err != nil {
		return "", err
	}
	p.node = first[0]
	names := []string{p.node.Name}
	others := p.w.Fleet.List()
	for _, i := range p.w.perm(len(others)) {
		if n := others[i]; n != p.node {
			names = append(names, n.Name)
		}
	}
	cuts, what := p.plan(names)
	p.cuts = cuts
	p.w.count("cuts")
	return what, p.set(false)
}

// set cuts, or heals (open).
func (p *partition) set(open bool) (failed error) {
	for _, c := range p.cuts {
		failed = errors.Join(failed, p.w.Fleet.Block(c.from, c.to, c.plane, open))
	}
	return failed
}

func (p *partition) Stop(context.Context) error {
	if p.node == nil {
		return nil
	}
	p.w.release(p.node)
	return p.set(true)
}

// apart are the cuts between two sides, both ways.
func apart(a, b []string, plane fleet.Plane) (cuts []blocked) {
	for _, x := range a {
		for _, y := range b {
			cuts = append(cuts, blocked{x, y, plane}, blocked{y, x, plane})
		}
	}
	return cuts
}

func isolate(n []string) ([]blocked, string) {
	return apart(n[:1], n[1:], fleet.AllPlanes), n[0] + " cut off"
}

func split(n []string) ([]blocked, string) {
	k := (len(n) - 1) / 2
	return apart(n[:k], n[k:], fleet.AllPlanes), fmt.Sprintf("%s | %s", strings.Join(n[:k], " "), strings.Join(n[k:], " "))
}

func bridge(n []string) ([]blocked, string) {
	k := (len(n) + 1) / 2
	return apart(n[1:k], n[k:], fleet.AllPlanes), fmt.Sprintf("%s | %s, both reach %s", strings.Join(n[1:k], " "), strings.Join(n[k:], " "), n[0])
}

func oneWay(n []string) (cuts []blocked, what string) {
	for _, to := range n[1:] {
		cuts = append(cuts, blocked{n[0], to, fleet.AllPlanes})
	}
	return cuts, n[0] + " hears the others, and they do not hear it"
}

func onePair(n []string) ([]blocked, string) {
	return apart(n[:1], n[1:2], fleet.AllPlanes), fmt.Sprintf("%s and %s cut off from each other", n[0], n[1])
}

func peerOnly(n []string) ([]blocked, string) {
	return apart(n[:1], n[1:], fleet.PeerPlane), n[0] + " cut off on the peer plane alone"
}

func gossipOnly(n []string) ([]blocked, string) {
	return apart(n[:1], n[1:], fleet.GossipPlane), n[0] + " cut off from gossip alone"
}

package fleet

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// rules are the packet filter of a yard: one chain on its bridge, written anew as
// a whole at each change, so that there is nothing to undo one by one.
type rules struct {
	table string                   // name of the nft table
	port  func(node string) string // the bridge's port of a node
	apply func(script string) error

	mu      sync.Mutex // guards what follows, held while nft runs
	blocked map[pair][]Plane
	lossy   map[pair]int // per cent
}

// Ports of nodes in namespaces: each node has all of them to itself.
const (
	grpcPort   = 7600
	peerPort   = 7601
	gossipPort = 7602
	httpPort   = 7700
)

// block adds or takes away what drops one direction on a plane.
func (r *rules) block(p pair, plane Plane, open bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if open && plane == AllPlanes {
		delete(r.blocked, p)
	} else if open {
		r.blocked[p] = slices.DeleteFunc(r.blocked[p], func(b Plane) bool { return b == plane })
	} else if !slices.Contains(r.blocked[p], plane) {
		r.blocked[p] = append(r.blocked[p], plane)
	}
	return r.apply(r.script())
}

// lose sets the share of packets that are dropped in one direction.
func (r *rules) lose(p pair, percent int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if percent == 0 {
		delete(r.lossy, p)
	} else {
		r.lossy[p] = percent
	}
	return r.apply(r.script())
}

// script is the chain as it should be, in nft's language. The caller holds mu.
func (r *rules) script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "flush chain bridge %s cut\n", r.table)
	var lines []string
	for p, list := range r.blocked {
		for _, plane := range list {
			for _, match := range plane.matches() {
				lines = append(lines, r.rule(p, match+"drop"))
			}
		}
	}
	for p, percent := range r.lossy {
		lines = append(lines, r.rule(p, fmt.Sprintf("numgen random mod 100 < %d drop", percent)))
	}
	slices.Sort(lines)
	b.WriteString(strings.Join(lines, ""))
	return b.String()
}

func (r *rules) rule(p pair, what string) string {
	return fmt.Sprintf("add rule bridge %s cut iifname %q oifname %q %s\n", r.table, r.port(p.from), r.port(p.to), what)
}

// matches are what tells a plane's packets, either side having dialled.
func (p Plane) matches() []string {
	ports := func(protocol string, port int) []string {
		return []string{fmt.Sprintf("%s dport %d ", protocol, port), fmt.Sprintf("%s sport %d ", protocol, port)}
	}
	switch p {
	case PeerPlane:
		return ports("tcp", peerPort)
	case GossipPlane:
		return append(ports("tcp", gossipPort), ports("udp", gossipPort)...)
	}
	return []string{""}
}

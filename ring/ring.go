// Package ring says which node owns a slot and which nodes hold its copies.
//
// Its functions are pure and depend on the set of names alone, never on their
// order. Their results are stored in the control state and executed from there:
// a new version of a library beneath must move nothing by itself.
package ring

import (
	"fmt"
	"slices"

	"github.com/buraksezer/consistent"
	"github.com/zeebo/xxh3"
)

// The bounds of a ring, and what it is built with.
const (
	MaxSlots = 1 << 16
	MaxNodes = 256

	load         = 1.10 // an owner has at most this times the mean, rounded up
	virtualNodes = 100
)

type member string

func (m member) String() string { return string(m) }

type hasher struct{}

func (hasher) Sum64(b []byte) uint64 { return xxh3.Hash(b) }

// Owners gives each of 1 … MaxSlots slots an owner among 1 … MaxNodes nodes, by
// consistent hashing with bounded loads (Mirrokni et al., 2016): no node owns
// more than ⌈1.10 × mean⌉ slots. Names must be distinct and not empty. Any other
// input is an error, also one the library beneath would panic on.
func Owners(nodes []string, slots int) (owner []string, err error) {
	if slots < 1 || slots > MaxSlots {
		return nil, fmt.Errorf("ring of %d slots, want 1 … %d", slots, MaxSlots)
	}
	sorted, err := check(nodes)
	if err != nil {
		return nil, err
	}
	if len(sorted) == 1 { // nothing to spread
		return slices.Repeat(sorted, slots), nil
	}
	defer func() {
		if p := recover(); p != nil {
			owner, err = nil, fmt.Errorf("ring of %d nodes and %d slots: %v", len(nodes), slots, p)
		}
	}()
	return spread(sorted, slots)
}

// check returns nodes sorted, or what is wrong with them.
func check(nodes []string) ([]string, error) {
	if len(nodes) < 1 || len(nodes) > MaxNodes {
		return nil, fmt.Errorf("ring of %d nodes, want 1 … %d", len(nodes), MaxNodes)
	}
	sorted := slices.Clone(nodes)
	slices.Sort(sorted)
	for i, n := range sorted {
		if n == "" {
			return nil, fmt.Errorf("ring: a node without a name")
		}
		if i > 0 && n == sorted[i-1] {
			return nil, fmt.Errorf("ring: node %q twice", n)
		}
	}
	return sorted, nil
}

// spread asks the library. It may panic.
func spread(sorted []string, slots int) ([]string, error) {
	members := make([]consistent.Member, len(sorted))
	for i, n := range sorted {
		members[i] = member(n)
	}
	c := consistent.New(members, consistent.Config{
		Hasher:            hasher{},
		PartitionCount:    slots,
		ReplicationFactor: virtualNodes,
		Load:              load,
	})
	owner := make([]string, slots)
	for slot := range owner {
		m := c.GetPartitionOwner(slot)
		if m == nil {
			return nil, fmt.Errorf("ring: slot %d has no owner", slot)
		}
		owner[slot] = m.String()
	}
	return owner, nil
}

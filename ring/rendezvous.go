package ring

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/zeebo/xxh3"
)

// Rendezvous ranks nodes for a key by highest random weight (Thaler and
// Ravishankar, 1996): losing a node changes nothing in the order of the others.
// The result is a new slice; a node given twice is in it once.
func Rendezvous(key string, nodes []string) []string {
	type ranked struct {
		node   string
		weight uint64
	}
	rank := make([]ranked, len(nodes))
	var buf []byte
	for i, n := range nodes {
		buf = binary.AppendUvarint(buf[:0], uint64(len(key)))
		buf = append(append(buf, key...), n...)
		rank[i] = ranked{n, xxh3.Hash(buf)}
	}
	slices.SortFunc(rank, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.node, b.node))
	})
	rank = slices.Compact(rank)
	out := make([]string, len(rank))
	for i, r := range rank {
		out[i] = r.node
	}
	return out
}

// Replicas returns the nodes that hold the copies of a group: its owner first,
// then the n-1 others that rendezvous ranks highest for it. It returns fewer if
// there are fewer nodes, and none if n < 1. The owner need not be among nodes.
func Replicas(owner string, nodes []string, n int) []string {
	if n < 1 {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(nodes), func(node string) bool { return node == owner })
	out := append([]string{owner}, Rendezvous(owner, others)...)
	return out[:min(n, len(out))]
}

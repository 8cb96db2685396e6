package check

import "slices"

// Replica is what one replica said of itself at one moment.
type Replica struct {
	Node         string
	Group, Epoch uint32
	Applied      uint64 // index
	Chain        uint64 // rolling hash over all entries and answers up to Applied
}

// Replicas holds that replicas of one group at one index have equal hashes (I8). Give it as
// many looks at each replica as there are: only those at equal index tell anything.
// Cost: n log n.
func Replicas(seen []Replica) Verdict {
	v := Verdict{Checker: "replicas"}
	seen = slices.SortedStableFunc(slices.Values(seen), func(a, b Replica) int {
		switch {
		case a.Group != b.Group:
			return compare(a.Group, b.Group)
		case a.Epoch != b.Epoch:
			return compare(a.Epoch, b.Epoch)
		}
		return compare(a.Applied, b.Applied)
	})
	for i := 1; i < len(seen); i++ {
		a, b := &seen[i-1], &seen[i]
		if a.Group != b.Group || a.Epoch != b.Epoch || a.Applied != b.Applied {
			continue
		}
		if a.Node != b.Node {
			v.Checked++
		}
		if a.Chain != b.Chain {
			v.find("", nil, "replicas of group %d epoch %d differ at index %d: %s has %016x, %s %016x", a.Group, a.Epoch, a.Applied, a.Node, a.Chain, b.Node, b.Chain)
		}
	}
	return v
}

package ring

import (
	"cmp"
	"slices"
)

// Plan gives each slot an owner among nodes as Owners does, but begins with the
// owners that slots have now and moves no more of them than it must:
//
//   - a slot of an owner that is not among nodes, or "", goes;
//   - so do those that a node has beyond ⌈1.10 × mean⌉;
//   - a node with less than three quarters of the mean, such as a new one, is
//     filled up to the mean.
//
// Which slots go, and where to, follows Owners as far as it can, so that two
// clusters with one history of members stay alike and a slot seldom moves twice.
// For any history of members, when k of them come or go among n, at most about
// 1.1 × k/n of all slots move. Errors are those of Owners.
func Plan(present, nodes []string) ([]string, error) {
	ideal, err := Owners(nodes, len(present))
	if err != nil {
		return nil, err
	}
	p := newPlan(present, ideal, nodes)
	p.shed()
	p.assign()
	p.fill()
	return p.owner, nil
}

// plan is a placement in the making.
type plan struct {
	ideal []string
	owner []string // "": none at the moment
	nodes []string // sorted
	count map[string]int
	most  int // slots a node may have
	mean  int // rounded down
}

func newPlan(present, ideal, nodes []string) *plan {
	p := &plan{ideal: ideal, owner: slices.Clone(present), nodes: slices.Sorted(slices.Values(nodes))}
	n := len(nodes)
	p.mean = len(present) / n
	p.most = (110*len(present) + 100*n - 1) / (100 * n)
	p.count = make(map[string]int, n)
	for _, node := range nodes {
		p.count[node] = 0
	}
	for slot, node := range p.owner {
		if _, ok := p.count[node]; ok {
			p.count[node]++
		} else {
			p.owner[slot] = ""
		}
	}
	return p
}

// shed takes what is too much from each node, first what belongs elsewhere.
func (p *plan) shed() {
	for _, mine := range []bool{false, true} {
		for slot, node := range p.owner {
			if node != "" && p.count[node] > p.most && (p.ideal[slot] == node) == mine {
				p.owner[slot] = ""
				p.count[node]--
			}
		}
	}
}

// assign gives all slots without an owner to one: the ideal one up to the mean,
// else the one that has least.
func (p *plan) assign() {
	for slot, node := range p.owner {
		if ideal := p.ideal[slot]; node == "" && p.count[ideal] <= p.mean {
			p.give(slot, ideal)
		}
	}
	for slot, node := range p.owner {
		if node == "" {
			p.give(slot, p.least())
		}
	}
}

func (p *plan) give(slot int, node string) {
	if old := p.owner[slot]; old != "" {
		p.count[old]--
	}
	p.owner[slot] = node
	p.count[node]++
}

func (p *plan) least() string {
	return slices.MinFunc(p.nodes, func(a, b string) int { return cmp.Compare(p.count[a], p.count[b]) })
}

// fill brings nodes with far too little to the mean, from those above it: first
// slots that belong to the node, then of whoever has most.
func (p *plan) fill() {
	for _, node := range p.nodes {
		if 4*p.count[node] >= 3*p.mean {
			continue
		}
		for slot, from := range p.owner {
			if p.count[node] < p.mean && p.ideal[slot] == node && p.count[from] > p.mean {
				p.give(slot, node)
			}
		}
		for p.count[node] < p.mean {
			rich := slices.MaxFunc(p.nodes, func(a, b string) int { return cmp.Compare(p.count[a], p.count[b]) })
			p.give(slices.Index(p.owner, rich), node)
		}
	}
}

package trial

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bench/nemesis"
)

// ground is the cluster on which a kind works. Without namespaces all are relayed.
func (c *crew) ground(k nemesis.Kind) ground {
	return ground{
		nodes: max(k.Nodes, 3), relayed: has(k, nemesis.Relays) || c.has&nemesis.Namespaces == 0,
		disks: has(k, nemesis.Disk), clock: has(k, nemesis.Clock),
	}
}

// stage is a set of kinds that one act may mix.
type stage struct {
	name   string
	ground ground
	of     func(k nemesis.Kind) bool
	weight int // share of a trial's time
}

func has(k nemesis.Kind, n nemesis.Needs) bool { return k.Needs&n != 0 }

// stages are those of a safety trial. Five nodes: a cut then has two sides, and a
// group is not on every node.
var stages = []stage{
	{"processes and links", ground{nodes: 5, disks: true}, func(k nemesis.Kind) bool {
		return !k.Loses && !k.Bends && !has(k, nemesis.Relays) && k.Name != "churn"
	}, 6},
	{"members", ground{nodes: 3}, func(k nemesis.Kind) bool { return k.Name == "churn" }, 1},
	{"messages", ground{nodes: 3, relayed: true}, func(k nemesis.Kind) bool {
		return !k.Loses && !k.Bends && !has(k, nemesis.Namespaces|nemesis.Disk) && k.Name != "churn" && k.Nodes < 5
	}, 2},
	{"clocks", ground{nodes: 3, clock: true}, func(k nemesis.Kind) bool {
		return k.Bends || k.Name == "kill-leader" || k.Name == "isolate" || k.Name == "pause"
	}, 1},
	{"losses", ground{nodes: 3}, func(k nemesis.Kind) bool { return k.Loses }, 1},
}

// safetyActs gives each stage its share of the time, in acts that are not too long.
func safetyActs(kinds []nemesis.Kind, lasts time.Duration) (acts []act) {
	total := 0
	for _, s := range stages {
		total += s.weight
	}
	for _, s := range stages {
		var of []nemesis.Kind
		for _, k := range kinds {
			if s.of(k) {
				of = append(of, k)
			}
		}
		share := lasts * time.Duration(s.weight) / time.Duration(total)
		n := int((share + mostAct - 1) / mostAct)
		for i := range n {
			a := act{name: s.name, ground: s.ground, kinds: of, lasts: share / time.Duration(n), mixed: s.name != "losses" && s.name != "members"}
			if n > 1 {
				a.name = fmt.Sprintf("%s %d", s.name, i+1)
			}
			if !a.mixed { // in turn: each has its part of the share
				a.lasts /= time.Duration(len(of))
			}
			acts = append(acts, a)
		}
	}
	return acts
}

// aloneActs puts kinds that stand on equal ground into one act. Kinds that would have
// one for themselves share the ground that all of them can stand on.
func (c *crew) aloneActs(kinds []nemesis.Kind, each time.Duration) (acts []act) {
	for _, k := range kinds {
		a := act{ground: c.ground(k), kinds: []nemesis.Kind{k}, lasts: each}
		i := slices.IndexFunc(acts, func(o act) bool { return o.ground == a.ground && alike(o, a) })
		if i < 0 {
			acts = append(acts, a)
		} else {
			acts[i].kinds = append(acts[i].kinds, k)
		}
	}
	return named(c.shared(acts))
}

// alike says whether two acts can be one, on ground that both can stand on.
func alike(a, b act) bool {
	return a.kinds[0].Loses == b.kinds[0].Loses && a.kinds[0].Bends == b.kinds[0].Bends &&
		time.Duration(len(a.kinds)+len(b.kinds))*a.lasts <= mostAct
}

// shared joins acts of one kind, each with the first one that has ground for both.
func (c *crew) shared(acts []act) (joined []act) {
	open := 0 // index + 1 of the act that takes more in
	for _, a := range acts {
		if len(a.kinds) > 1 {
			joined = append(joined, a)
			continue
		}
		if open > 0 && alike(joined[open-1], a) {
			o := &joined[open-1]
			if g := o.ground.with(a.ground); c.carries(g, append(o.kinds, a.kinds...)) {
				o.ground, o.kinds = g, append(o.kinds, a.kinds...)
				continue
			}
		}
		joined = append(joined, a)
		open = len(joined)
	}
	return joined
}

// with is what has all that two grounds have.
func (g ground) with(o ground) ground {
	return ground{nodes: max(g.nodes, o.nodes), relayed: g.relayed || o.relayed, disks: g.disks || o.disks, clock: g.clock || o.clock}
}

// carries says whether all these kinds work on a ground.
func (c *crew) carries(g ground, kinds []nemesis.Kind) bool {
	return !slices.ContainsFunc(kinds, func(k nemesis.Kind) bool { return k.Needs&^c.abilities(g) != 0 || k.Nodes > g.nodes })
}

// named names acts after their kinds.
func named(acts []act) []act {
	for i := range acts {
		var names []string
		for _, k := range acts[i].kinds {
			names = append(names, k.Name)
		}
		acts[i].name = strings.Join(names, ", ")
	}
	return acts
}

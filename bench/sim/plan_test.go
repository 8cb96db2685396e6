package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// plan is all that a seed decides.
type plan struct {
	seed   uint64
	nodes  int           // at the beginning
	later  int           // nodes that join after the start of the load
	drain  bool          // one of more than three is drained under load
	remove bool          // or killed, and removed for good
	delay  time.Duration // of each link
	drift  []int         // ppm that the clock of each node is fast
	offset []time.Duration
	works  []string
	rounds []round
}

// round is some faults that overlap.
type round struct {
	pause  time.Duration // since the round before has healed
	faults []breakage
}

// breakage is one fault. What its numbers mean is up to its nemesis.
type breakage struct {
	kind string
	wait time.Duration // since the round began
	last time.Duration // how long
	pick uint64        // which node, and what else is to be chosen
}

func (b breakage) String() string {
	return fmt.Sprintf("%s after %v for %v", b.kind, b.wait.Round(time.Millisecond), b.last.Round(time.Millisecond))
}

// members says whether nodes come or go for good.
func (p *plan) members() bool { return p.later > 0 || p.drain || p.remove }

func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d nodes", p.seed, p.nodes)
	if p.later > 0 {
		fmt.Fprintf(&b, ", %d join", p.later)
	}
	if p.drain {
		b.WriteString(", one is drained")
	}
	if p.remove {
		b.WriteString(", one is removed")
	}
	fmt.Fprintf(&b, "; links %v; clocks %v ppm; %s", p.delay, p.drift, strings.Join(p.works, " "))
	for _, r := range p.rounds {
		fmt.Fprintf(&b, "\n\t%v after a pause of %v", r.faults, r.pause.Round(time.Millisecond))
	}
	return b.String()
}

// most is the longest that a fault of a kind lasts. What is listed twice is twice as
// likely.
var most = []struct {
	kind string
	most time.Duration
}{
	{"kill", 10 * time.Second},
	{"kill", 500 * time.Millisecond},
	{"kill-leader", 10 * time.Second},
	{"kill-leader", 500 * time.Millisecond},
	{"kill-two", 5 * time.Second},
	{"kill-all", 3 * time.Second},
	{"stop", 5 * time.Second},
	{"freeze", 12 * time.Second},
	{"freeze-leader", 1500 * time.Millisecond},
	{"isolate", 8 * time.Second},
	{"isolate-leader", 8 * time.Second},
	{"one-way", 6 * time.Second},
	{"pair", 8 * time.Second},
	{"bridge", 8 * time.Second},
	{"ring", 8 * time.Second},
	{"shatter", 8 * time.Second},
	{"clients", 4 * time.Second},
	{"loss", 8 * time.Second},
	{"delay", 8 * time.Second},
	{"reset", 5 * time.Second},
	{"flap", 8 * time.Second},
	{"slow-apply", 6 * time.Second},
	{"hung-apply", 6 * time.Second},
	{"slow-store", 6 * time.Second},
	{"hung-store", 6 * time.Second},
	{"full-disk", 8 * time.Second},
	{"copies", 8 * time.Second},
}

// allWorks are the kinds of load; the first two are always on.
var allWorks = []string{"frozen", "refill", "patient", "copies", "pair", "permits", "changed", "looks"}

// newPlan is the plan of a seed: of one seed always the same.
func newPlan(seed uint64) *plan {
	r := rand.New(rand.NewPCG(seed, 0x72696e676c696d69))
	p := &plan{seed: seed, nodes: []int{3, 3, 3, 3, 4, 5, 5, 1}[r.IntN(8)]}
	switch {
	case p.nodes == 1:
		p.later = 2
	case r.IntN(5) == 0:
		p.later = 1
	case p.nodes > 3 && r.IntN(3) == 0:
		p.drain = true
	case p.nodes > 3 && r.IntN(3) == 0:
		p.remove = true
	}
	p.delay = time.Duration(r.IntN(3)) * 500 * time.Microsecond
	for range p.nodes + p.later {
		p.drift = append(p.drift, r.IntN(199)-99) // two clocks differ by less than 200 ppm
		p.offset = append(p.offset, time.Duration(r.Int64N(int64(1000*time.Hour))))
	}
	p.works = append(p.works, allWorks[:2]...)
	for _, w := range allWorks[2:] {
		if r.IntN(3) > 0 {
			p.works = append(p.works, w)
		}
	}
	for range 1 + r.IntN(3) {
		p.rounds = append(p.rounds, newRound(r))
	}
	return p
}

func newRound(r *rand.Rand) round {
	o := round{pause: time.Second + time.Duration(r.Int64N(int64(3*time.Second)))}
	for range []int{1, 1, 1, 2, 2, 3}[r.IntN(6)] {
		m := most[r.IntN(len(most))]
		o.faults = append(o.faults, breakage{
			kind: m.kind, wait: time.Duration(r.Int64N(int64(time.Second))),
			last: 200*time.Millisecond + time.Duration(r.Int64N(int64(m.most))), pick: r.Uint64(),
		})
	}
	return o
}

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
	nodes  int             // at the beginning
	later  int             // nodes that join after the start of the load
	drain  bool            // one of more than three is drained under load
	remove bool            // or killed, and removed for good
	delay  time.Duration   // of each link between nodes
	far    []time.Duration // each client's links to all nodes: how long an answer may get lost
	after  []time.Duration // how long after the one before each node starts
	drift  []int           // ppm that the clock of each node is fast
	offset []time.Duration
	works  []string
	rounds []round

	groups  int           // of the cluster; 0: one per node
	join    time.Duration // since the cluster began, when the later nodes join
	logs    int           // bytes of a group's log; 0: so many that nobody needs a snapshot
	control int           // entries of the control log, behind a snapshot; 0: no snapshot
	losses  bool          // there are policies that count as full, or are salvaged, after a loss
	saves   time.Duration // between two checkpoints, to salvage from; 0: none
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
	if p.groups > 0 {
		fmt.Fprintf(&b, ", %d groups", p.groups)
	}
	if p.logs > 0 {
		fmt.Fprintf(&b, ", logs of %d bytes", p.logs)
	}
	if p.control > 0 {
		fmt.Fprintf(&b, ", a control log of %d entries", p.control)
	}
	if p.losses {
		fmt.Fprintf(&b, ", policies of each on_state_loss, checkpoints every %v", p.saves)
	}
	fmt.Fprintf(&b, "; links %v, of clients %v; clocks %v ppm; %s", p.delay, p.far, p.drift, strings.Join(p.works, " "))
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
	{"amnesia", 2 * time.Second},
	{"newborn", 2 * time.Second},
	{"late-replies", 2 * time.Second},
	{"bounce", 2 * time.Second},
	{"gap", 2 * time.Second},
}

// allWorks are the kinds of load; the first two are always on. Beside them are the
// losses, where there are policies for them, and now and then again and stare.
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
	for _, i := range r.Perm(len(allWorks) - 2)[:2+r.IntN(4)] {
		p.works = append(p.works, allWorks[2+i])
	}
	for range 1 + r.IntN(3) {
		p.rounds = append(p.rounds, newRound(r))
	}
	p.vary(rand.New(rand.NewPCG(seed, 0x76617279)))
	p.distances(rand.New(rand.NewPCG(seed, 0x666172)))
	p.phases(rand.New(rand.NewPCG(seed, 0x706861736573)))
	return p
}

// phases decides by how much each node starts after the one before it. What nodes do
// every so often they do in step else, all of a cluster at the same moments.
func (p *plan) phases(r *rand.Rand) {
	for range 8 { // more nodes than any plan has
		p.after = append(p.after, time.Duration(r.Int64N(int64(100*time.Millisecond))))
	}
}

// distances decides how far off clients are. Only what is on its way for a while can
// be lost on it: an answer that is lost after its charge is what retries are for.
func (p *plan) distances(r *rand.Rand) {
	for range clientHosts {
		p.far = append(p.far, time.Millisecond+time.Duration(r.Int64N(int64(20*time.Millisecond))))
	}
}

// vary decides what kind of cluster it is.
func (p *plan) vary(r *rand.Rand) {
	p.join = time.Duration(r.Int64N(int64(4 * time.Second)))
	if r.IntN(3) > 0 {
		p.groups = 1 + r.IntN(p.nodes)
	}
	if r.IntN(2) == 0 {
		p.logs = 4<<10 + r.IntN(12<<10)
	}
	if r.IntN(2) == 0 {
		p.control = 4 + r.IntN(28)
	}
	for _, rare := range []struct {
		work string
		one  int // of so many
	}{{"again", 8}, {"stare", 24}} {
		if r.IntN(rare.one) == 0 {
			p.works = append(p.works, rare.work)
		}
	}
	if r.IntN(3) > 0 {
		return
	}
	p.losses, p.works = true, append(p.works, "losses")
	if r.IntN(2) == 0 {
		p.saves = time.Duration(1+r.IntN(3)) * time.Second
	}
	last := &p.rounds[len(p.rounds)-1].faults[0]
	if r.IntN(2) == 0 { // else a loss is left to chance
		last.kind, last.last = []string{"kill-two", "kill-all"}[r.IntN(2)], 200*time.Millisecond+time.Duration(r.Int64N(int64(4*time.Second)))
	}
}

func newRound(r *rand.Rand) round {
	o := round{pause: 500*time.Millisecond + time.Duration(r.Int64N(int64(2*time.Second)))}
	for range []int{1, 1, 1, 2, 2, 3}[r.IntN(6)] {
		m := most[r.IntN(len(most))]
		o.faults = append(o.faults, breakage{
			kind: m.kind, wait: time.Duration(r.Int64N(int64(time.Second))),
			last: 200*time.Millisecond + time.Duration(r.Int64N(int64(m.most))), pick: r.Uint64(),
		})
	}
	return o
}

package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	withWorks  = flag.String("works", "", "TestNarrow: this load alone, by commas")
	withFaults = flag.String("faults", "", "TestNarrow: these faults alone, by commas")
	withRounds = flag.Int("rounds", 3, "TestNarrow: how many of them, one after the other")
	withNodes  = flag.Int("nodes", 3, "TestNarrow: how many nodes begin")
	withMoves  = flag.Bool("moves", false, "TestNarrow: one more node joins under load")
)

// TestNarrow runs seeds of which load and faults are given, and prints for each which
// checkers found something: to look closer at one kind of fault, and to see which
// checker sees a bug that was made on purpose (bench/mutants). It fails on a
// violation, and runs nothing without -works and -faults.
func TestNarrow(t *testing.T) {
	if *withWorks == "" || *withFaults == "" {
		t.Skip("it needs -works and -faults")
	}
	if *only > 0 {
		*first, *seeds = *only, 1
	}
	for i := range *seeds {
		seed := *first + uint64(i)**step
		p := narrowPlan(seed)
		o := run(t, p)
		switch {
		case len(o.failures) > 0:
			fmt.Printf("seed %d: FOUND by %s: %s\n", seed, strings.Join(o.kinds(), ", "), strings.ReplaceAll(o.failures[0], "\n", " | "))
			t.Errorf("seed %d, trace %s:\n%s", seed, o.write(t), strings.Join(o.failures, "\n"))
		case len(o.void) > 0:
			fmt.Printf("seed %d: VOID: %s\n", seed, strings.Join(o.void, "; "))
		default:
			fmt.Printf("seed %d: HELD: %d operations, %d admitted, %d unknown, %d retries, %d answers repeated\n", seed, o.ops, o.admitted, o.unknown, o.retries, o.repeated)
		}
		if *keep {
			fmt.Println(o.write(t))
		}
	}
}

// narrowPlan is a plan of a seed and of the flags.
func narrowPlan(seed uint64) *plan {
	p := newPlan(seed)
	p.nodes, p.later, p.drain, p.remove = *withNodes, 0, false, false
	p.groups, p.logs, p.control, p.losses, p.saves = 0, 0, 0, slices.Contains(strings.Split(*withWorks, ","), "losses"), 0
	if *withMoves {
		p.later = 1
	}
	r := rand.New(rand.NewPCG(seed, 0x6e6172726f77))
	p.drift, p.offset = nil, nil
	for range p.nodes + p.later {
		p.drift = append(p.drift, r.IntN(199)-99)
		p.offset = append(p.offset, time.Duration(r.Int64N(int64(1000*time.Hour))))
	}
	p.works, p.rounds = strings.Split(*withWorks, ","), nil
	kinds := strings.Split(*withFaults, ",")
	for range *withRounds {
		kind := kinds[r.IntN(len(kinds))]
		p.rounds = append(p.rounds, round{
			pause:  time.Second + time.Duration(r.Int64N(int64(2*time.Second))),
			faults: []breakage{{kind: kind, last: 200*time.Millisecond + time.Duration(r.Int64N(int64(longest(kind)))), pick: r.Uint64()}},
		})
	}
	return p
}

// longest is how long a fault of a kind may last.
func longest(kind string) time.Duration {
	for i := range most {
		if most[i].kind == kind {
			return most[i].most
		}
	}
	return 2 * time.Second
}

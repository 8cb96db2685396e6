package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	seeds   = flag.Int("seeds", 4, "how many seeds to run")
	first   = flag.Uint64("from", 1, "the first seed")
	step    = flag.Uint64("step", 1, "from one seed to the next; 2 for two processes side by side")
	only    = flag.Uint64("seed", 0, "run this seed alone")
	again   = flag.Int("again", 3, "how often to run a failing seed again, to say how often it fails")
	verbose = flag.Bool("words", false, "also trace what nodes say for developers")
	keep    = flag.Bool("keep", false, "keep the trace of every seed, not only of those that fail")
	within  = flag.Duration("within", 0, "begin no further seed after so long; 0: run them all")
	traces  = flag.String("traces", os.TempDir(), "directory for traces")
)

// mostVoid is how many runs of a hundred may prove nothing.
const mostVoid = 5

// progress is how often a run says how far it is: what is broken off has proved that much.
const progress = time.Minute

// TestSeeds runs seeds one after the other. A violation fails it, and so do too many
// void runs.
func TestSeeds(t *testing.T) {
	if *only > 0 {
		*first, *seeds = *only, 1
	}
	begun := time.Now()
	var total outcome
	next := begun.Add(progress)
	ran, void, weak, failed, epochs := 0, 0, 0, 0, 0
	for i := range *seeds {
		if *within > 0 && time.Since(begun) > *within {
			break
		}
		ran++
		seed := *first + uint64(i)**step
		o := attemptSeed(t, seed)
		total.ops += o.ops
		total.admitted += o.admitted
		total.unknown += o.unknown
		total.retries += o.retries
		total.repeated += o.repeated
		total.virtual += o.virtual
		total.doubles += o.doubles
		total.installs += o.installs
		if o.epochs {
			epochs++
		}
		if o.weak() {
			weak++
		}
		switch {
		case len(o.failures) > 0:
			failed++
		case len(o.void) > 0:
			void++
			fmt.Printf("void: seed %d: %s\n", seed, strings.Join(o.void, "; "))
		}
		if now := time.Now(); now.After(next) {
			next = now.Add(progress)
			fmt.Printf("%d of %d seeds after %v, the last %d: %d void, %d failed\n", ran, *seeds, now.Sub(begun).Round(time.Second), seed, void, failed)
		}
	}
	took := time.Since(begun)
	fmt.Printf("%d seeds in %v (%.0f a minute, %.0f times real time): %d operations, %d admitted, %d unknown, %d retries, %d answers repeated, %d requests between nodes doubled, %d snapshots installed, %d runs with new epochs, %d weak, %d void, %d failed\n",
		ran, took.Round(time.Millisecond), float64(ran)/took.Minutes(), total.virtual.Seconds()/took.Seconds(),
		total.ops, total.admitted, total.unknown, total.retries, total.repeated, total.doubles, total.installs, epochs, weak, void, failed)
	if void > 1 && 100*void > mostVoid*ran {
		t.Errorf("%d of %d runs prove nothing", void, ran)
	}
	if ran >= 20 && weak == ran {
		t.Errorf("in each of %d runs nothing was left open, or nothing retried, or no answer repeated", ran)
	}
	if ran >= 20 && total.installs == 0 {
		t.Errorf("no snapshot was installed in %d runs", ran)
	}
}

// attemptSeed runs one seed, and again if it fails.
func attemptSeed(t *testing.T, seed uint64) *outcome {
	p := newPlan(seed)
	o := &outcome{plan: p, failures: []string{"the run did not end"}} // if its test was ended from within
	t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
		o = run(t, p)
		if len(o.failures) == 0 && !*keep {
			return
		}
		path := o.write(t)
		if len(o.failures) == 0 {
			fmt.Printf("seed %d: %d operations, %d unknown, %d retries, %d answers repeated, %v virtual in %v, trace %s\n", seed, o.ops, o.unknown, o.retries, o.repeated, o.virtual, o.real, path)
			return
		}
		fails := 1
		for range *again {
			if len(run(t, p).failures) > 0 {
				fails++
			}
		}
		fmt.Printf("FAILED: seed %d (%s), %d of %d times\n\tagain: make chaos-sim SEEDS=1 FROM=%d\n\ttrace: %s\n", seed, strings.Join(o.kinds(), ", "), fails, *again+1, seed, path)
		t.Errorf("seed %d:\n%s", seed, strings.Join(o.failures, "\n"))
	})
	return o
}

// write keeps the trace of a run in a file.
func (o *outcome) write(t *testing.T) string {
	path := filepath.Join(*traces, fmt.Sprintf("ringlimit-sim-%d.trace", o.plan.seed))
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n\nfailures:\n%s\n\nvoid: %v\ndoubts: %v\n\ntrace:\n", o.plan, strings.Join(o.failures, "\n"), o.void, o.doubts)
	b.Write(o.trace.lines.Bytes())
	b.WriteString("\nhistory:\n")
	for i := range o.history {
		fmt.Fprintln(&b, o.history[i].String())
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Error(err)
	}
	return path
}

// TestPlanIsOfItsSeedAlone: a seed that is printed must be worth printing.
func TestPlanIsOfItsSeedAlone(t *testing.T) {
	kinds, loads := make(map[string]bool), make(map[string]bool)
	for seed := range uint64(300) {
		p := newPlan(seed)
		if again := newPlan(seed); p.String() != again.String() {
			t.Fatalf("seed %d is %v, and %v", seed, p, again)
		}
		for _, r := range p.rounds {
			for _, b := range r.faults {
				kinds[b.kind] = true
			}
		}
		for _, w := range p.works {
			loads[w] = true
		}
	}
	for kind := range nemeses {
		if !kinds[kind] {
			t.Errorf("no seed has a %s", kind)
		}
	}
	for work := range works {
		if !loads[work] {
			t.Errorf("no seed asks for %s", work)
		}
	}
}

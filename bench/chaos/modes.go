package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/nemesis"
	outcome "github.com/ringlimit/ringlimit/bench/report"
	"github.com/ringlimit/ringlimit/bench/trial"
)

// modeFlags are those of the modes that break clusters by nemeses: safety, liveness
// and nemesis.
type modeFlags struct {
	duration time.Duration
	seed     uint64
	reports  string
	loopback bool
}

func (m *modeFlags) register(fs *flag.FlagSet) {
	fs.DurationVar(&m.duration, "duration", 15*time.Second, "of safety all of it, of liveness and nemesis each fault")
	fs.Uint64Var(&m.seed, "seed", 0, "of safety, liveness and nemesis, for what is left to chance (default: a new one)")
	fs.StringVar(&m.reports, "report", "", "`directory` for report.html and report.json of safety, liveness and nemesis (default: that of data and logs, which is kept then)")
	fs.BoolVar(&m.loopback, "loopback", false, "of safety, liveness and nemesis: no network namespaces, but relays on loopback, as where there are none")
}

// isMode says whether names call for a mode and not for scenarios.
func isMode(names []string) bool {
	return len(names) > 0 && (names[0] == "safety" || names[0] == "liveness" || names[0] == "nemesis")
}

func modeUsage() string {
	return "modes:\n" +
		"  safety           nemeses at random, up to three at once\n" +
		"  liveness         one fault of a minority that stays: every group must serve within 2 s, and go on\n" +
		"  nemesis NAME…    each nemesis by itself (all: every one of them):\n\n" + nemesis.Usage()
}

// runMode runs a mode and returns the exit code.
func runMode(ctx context.Context, opts options, stdout, stderr io.Writer) int {
	if opts.seed == 0 {
		opts.seed = rand.Uint64N(1 << 32)
	}
	fmt.Fprintf(stderr, "chaos: -seed %d\n", opts.seed)
	cfg := trial.Config{Binary: opts.binary, Dir: opts.dir, Seed: opts.seed, Duration: opts.duration, Loopback: opts.loopback, Progress: stderr}
	r, err := playMode(ctx, opts.names, cfg)
	if errors.Is(err, errUsage) {
		fmt.Fprintln(stderr, "chaos:", err)
		return 2
	}
	where := opts.reports
	if where == "" {
		where = opts.dir
	}
	if r != nil {
		err = errors.Join(err, os.MkdirAll(where, 0o755), r.Write(where))
		summarize(stdout, r)
	}
	if err != nil {
		fmt.Fprintln(stderr, "chaos:", err)
	}
	fmt.Fprintln(stderr, "chaos: the report is", filepath.Join(where, "report.html"))
	if err != nil || r.State != outcome.Held {
		fmt.Fprintln(stderr, "chaos: data and logs are in", opts.dir)
		return 1
	}
	if !opts.keep && opts.reports != "" {
		_ = os.RemoveAll(opts.dir)
	}
	return 0
}

var errUsage = errors.New("usage")

func playMode(ctx context.Context, names []string, cfg trial.Config) (*outcome.Report, error) {
	switch {
	case names[0] == "nemesis" && len(names) > 1:
		kinds, err := nemesis.Find(names[1:])
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errUsage, err)
		}
		return trial.Alone(ctx, cfg, kinds)
	case names[0] == "nemesis":
		return nil, fmt.Errorf("%w: name a nemesis", errUsage)
	case len(names) > 1:
		return nil, fmt.Errorf("%w: %s takes no names", errUsage, names[0])
	case names[0] == "liveness":
		return trial.Liveness(ctx, cfg)
	}
	return trial.Safety(ctx, cfg)
}

// mostShown bounds the broken promises of an act that are printed.
const mostShown = 10

// summarize prints one line for each act, and each broken promise with what shows it.
func summarize(w io.Writer, r *outcome.Report) {
	for i := range r.Acts {
		a := &r.Acts[i]
		fmt.Fprintln(w, a.Line())
		broken := slices.Clone(a.Broken)
		for _, v := range a.Verdicts {
			broken = append(broken, v.Findings...)
		}
		for _, b := range broken[:min(len(broken), mostShown)] {
			fmt.Fprintln(w, "  violation:", b)
		}
		if n := len(broken) - mostShown; n > 0 {
			fmt.Fprintf(w, "  violation: … %d more, in the report\n", n)
		}
		for _, v := range a.Void {
			fmt.Fprintln(w, "  void:", v)
		}
	}
	fmt.Fprintf(w, "%s, seed %d: %s\n", r.Mode, r.Seed, r.State)
}

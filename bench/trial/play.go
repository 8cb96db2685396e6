package trial

import (
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/bench/nemesis"
	"github.com/ringlimit/ringlimit/bench/report"
)

//go:embed policies.yaml
var policies []byte

const (
	readyIn = 60 * time.Second // for a cluster to form
	calm    = 2 * time.Second  // before the first fault and after the last
)

// crew plays the acts of one trial.
type crew struct {
	cfg    Config
	has    nemesis.Needs
	notes  []string // for the report: what cannot be tried here and why
	bender string   // the build with a test clock, once it is made
}

// scene is an act being played.
type scene struct {
	act
	number  int // of the act
	cfg     Config
	fleet   *fleet.Fleet
	world   *nemesis.World
	history *history
	stalls  *stalls
	faults  []report.Fault
	setup   check.Setup
	running check.Setup // of faults, as Void needs them
	broken  []string    // that no history shows
	has     nemesis.Needs
	groups  []uint32
	losses  []check.Loss // new epochs, as they were seen; the history's lock guards it while the cluster is watched
	dir     string       // of its nodes
}

// play starts the cluster of an act, lets it be loaded and broken, and judges. nil:
// nothing of it works on this machine. What was interrupted is not judged.
func (c *crew) play(ctx context.Context, number int, a act) (*report.Act, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s := &scene{act: a, number: number, cfg: c.cfg, has: c.abilities(a.ground)}
	if err := c.start(ctx, s, number); err != nil || s.fleet == nil {
		return nil, err
	}
	defer s.fleet.Close()
	s.stalls = watchStalls(s.history.began)
	defer s.stalls.close()

	watched := s.watch(ctx)
	defer watched()
	before := s.samples(ctx)
	load, err := s.startLoad(ctx)
	if err != nil {
		return nil, err
	}
	if !waitFor(ctx, calm) {
		load.stop()
		return nil, ctx.Err()
	}
	s.breakIt(ctx)
	waitFor(ctx, calm)
	load.stop()
	if ctx.Err() == nil {
		s.settle(ctx)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	watched()
	return s.judge(ctx, before), nil
}

// start starts the cluster of a scene; no cluster if no kind is left that works.
func (c *crew) start(ctx context.Context, s *scene, number int) error {
	dir := filepath.Join(c.cfg.Dir, fmt.Sprintf("act-%d", number+1))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file := filepath.Join(dir, "policies.yaml")
	if err := os.WriteFile(file, policies, 0o644); err != nil {
		return err
	}
	isolated := c.has&nemesis.Namespaces != 0
	cfg := fleet.Config{
		Binary: c.cfg.Binary, Dir: dir, Policies: file, Nodes: s.ground.nodes, Isolated: isolated,
		Relayed: s.ground.relayed || !isolated, SmallDisks: s.ground.disks && s.has&nemesis.Disk != 0,
	}
	var kinds []nemesis.Kind
	for _, k := range s.kinds {
		if k.Needs&^s.has == 0 && s.ground.nodes >= k.Nodes {
			kinds = append(kinds, k)
		} else {
			c.note("%s is left out of %s", k.Name, s.name)
		}
	}
	if s.kinds = kinds; len(kinds) == 0 {
		return nil
	}
	if s.ground.clock {
		if c.bender == "" {
			var err error
			if c.bender, err = fleet.BuildTestClock(c.cfg.Dir); err != nil {
				return err
			}
		}
		cfg.Binary, cfg.TestClock = c.bender, true
	}
	fmt.Fprintf(c.cfg.Progress, "trial: act %d: %s: %d nodes, %s\n", number+1, s.name, s.ground.nodes, grounds(cfg))
	ready, cancel := context.WithTimeout(ctx, readyIn)
	defer cancel()
	f, err := fleet.Start(ready, cfg)
	if err != nil {
		return err
	}
	s.fleet, s.dir = f, dir
	s.history = newHistory(fmt.Sprintf("%x-%d", c.cfg.Seed, number))
	s.world = nemesis.NewWorld(f, s.has, rand.New(rand.NewPCG(c.cfg.Seed, uint64(number))), s.history.now)
	return nil
}

// abilities are what a cluster on that ground has.
func (c *crew) abilities(g ground) nemesis.Needs {
	can := c.has
	if g.relayed || can&nemesis.Namespaces == 0 {
		can &^= nemesis.Namespaces
	} else {
		can &^= nemesis.Relays
	}
	if !g.disks {
		can &^= nemesis.Disk
	}
	if !g.clock {
		can &^= nemesis.Clock
	}
	return can
}

func grounds(cfg fleet.Config) string {
	var words []string
	if cfg.Isolated {
		words = append(words, "each in a network namespace")
	} else {
		words = append(words, "on loopback")
	}
	if cfg.Relayed {
		words = append(words, "relays between them")
	}
	if cfg.SmallDisks {
		words = append(words, "small disks")
	}
	return strings.Join(words, ", ")
}

// waitFor returns after d, false if ctx ends before.
func waitFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

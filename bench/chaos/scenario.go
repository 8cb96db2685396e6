package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// scenario is one way of breaking a cluster, and the promise that must hold.
type scenario struct {
	name    string
	promise string
	rounds  int // of a full run
	short   int // of a short one; 0: only when named, as others promise the same
	world   world
	play    func(ctx context.Context, a *arena, rounds int) error
}

// world is what a scenario needs of the cluster that it breaks.
type world struct {
	nodes   int                  // 0: three
	relayed bool                 // links can be cut
	flags   []string             // further flags of every node
	anew    bool                 // each round has a cluster of its own
	wrap    func(i int) []string // put before the command line of node i
}

// scenarios in the order of `all`.
var scenarios = []scenario{
	{"exact", "500 takes at once on a burst of 100 without refill admit exactly 100", 50, 10, world{}, playExact},
	{"refill", "an empty bucket gets its rate and no more", 5, 2, world{}, playRefill},
	{"kill-leader", "kill -9 of the leader amid 5,000 takes on a burst of 3,000: exactly 3,000, no error, all slots served within 2 s", 20, 0, world{}, playKillLeader},
	{"pause-leader", "the same with the leader stopped for 5 s", 5, 0, world{}, playPauseLeader},
	{"cut-leader", "the same with the leader cut off from the other nodes for 5 s", 5, 0, world{relayed: true}, playCutLeader},
	{"series", "leaders killed, stopped, cut off one way and both, a kill every 8 s beside steady load, 100 : 50 : 50: all slots served p50 100 ms after a kill, 0.5 s after the others, 2 s at most; 99.9 % of requests answered within 1 s, none failed", 50, 0, world{relayed: true}, playSeries},
	{"duplicates", "a million ids, each sent by two clients at once and some again later, a leader killed every 10 s: each is charged once", 1, 0, world{}, playDuplicates},
	{"refill-failover", "time without a leader counts, and no change of leader refills a bucket", 5, 0, world{}, playRefillFailover},
	{"roll", "kill -9 and restart each node in turn under load: no budget comes back, 3/3 within 30 s, replicas equal", 10, 0, world{}, playRoll},
	{"clocks", "nodes whose monotonic clocks are hours apart decide as one", 3, 0, world{wrap: clockApart}, playClocks},
	{"term", "SIGTERM of each node under load fails no request, and moves no slot", 3, 0, world{}, playTerm},
	{"grow", "3 → 5 → 7 → 4 → 3 nodes under load: no error within 2 s, budgets exact, slots balanced, few of them moved", 1, 0, world{anew: true}, playGrow},
	{"one-to-three", "one node becomes three: no bucket lost", 3, 0, world{nodes: 1, anew: true}, playOneToThree},
	{"remove", "one of five gone for good: 3/3 on the others within 60 s; it comes back empty under its name", 3, 0, world{nodes: 5, anew: true}, playRemove},
	{"roll5", "SIGTERM and restart of each of five nodes under load: no error, no budget lost, no slot moved", 20, 0, world{nodes: 5}, playRoll5},
	{"epochs", "two of three killed: no answer; back from their directories: a new epoch by each policy's on_state_loss", 3, 1, world{anew: true}, playEpochs},
	{"whole", "kill -9 of all nodes: policies and audit are there again, every group serves in a new epoch, from checkpoints where on_state_loss says so", 3, 1, world{anew: true, flags: []string{"--checkpoint-interval", checkpointEvery.String()}}, playWhole},
	{"restore", "a backup under load makes another cluster, of other nodes: no bucket is fuller than it was", 3, 1, world{anew: true}, playRestore},
	{"split", "five nodes cut 2|3 and healed: each group serves on one side only, no new epoch, budgets exact", 3, 0, world{nodes: 5, relayed: true}, playSplit},
	{"flap", "a link, one direction of one, or all links of a node come and go: no request fails, no leader of a majority is deposed, at most one change of leader per 10 s", 3, 0, world{relayed: true}, playFlap},
	{"stops", "a node stopped for 20 s: it loses no replica, nothing is replaced, no new epoch", 10, 0, world{}, playStops},
	{"starved", "a CPU quota of 5 % of a core for 60 s on one node: no voter of a group or of the control group is removed (Linux, root)", 3, 0, world{}, playStarved},
	{"stop-source", "the leader of a group that slots move from or to, stopped for 3 s: no request fails, no budget twice, the moves end", 6, 0, world{}, playStopSource},
	{"leased", "clients killed with tokens of a leased bucket in hand, leaders killed at a grant, both stopped for longer than a lease lasts: at most burst + rate × (time + 1 s) in any interval, and the rate when nothing is wrong", 3, 1, world{}, playLeased},
	{"modes", "all nodes stopped, then killed, and a leader: each failure mode does what it says, at once where connections are refused and else after its time; `local` admits one limit over four clients; back within 1 s of the cluster", 2, 1, world{}, playModes},
	{"envoy", "calls of Envoy on three nodes beside 64 callers without a pause: 99.5 % of the answers leave their node within the 20 ms that Envoy waits, decided or by their failure mode, and no call fails otherwise", 1, 0, world{}, playEnvoy},
	{"two-clusters", "two clusters told to join: both refuse, nothing changes", 3, 0, world{anew: true}, playTwoClusters},
}

func scenarioNames() []string {
	names := make([]string, len(scenarios))
	for i, s := range scenarios {
		names[i] = s.name
	}
	return names
}

func usage() string {
	var b strings.Builder
	for _, s := range scenarios {
		fmt.Fprintf(&b, "  %-16s %s\n", s.name, s.promise)
	}
	return b.String()
}

// pick returns the scenarios of that names, in the order given; all is every one,
// or of a short run those that are part of it.
func pick(names []string, short bool) ([]scenario, error) {
	var picked []scenario
next:
	for _, name := range names {
		if name == "all" {
			for _, s := range scenarios {
				if !short || s.short > 0 {
					picked = append(picked, s)
				}
			}
			continue
		}
		for _, s := range scenarios {
			if s.name == name {
				picked = append(picked, s)
				continue next
			}
		}
		return nil, fmt.Errorf("no scenario %q; there are: all, %s", name, strings.Join(scenarioNames(), ", "))
	}
	return picked, nil
}

// execute runs one scenario and reports on it.
func (s scenario) execute(ctx context.Context, opts options, progress io.Writer) *report {
	r := &report{Scenario: s.name}
	rounds := s.rounds
	if opts.short {
		rounds = max(1, s.short)
	}
	if opts.rounds > 0 {
		rounds = opts.rounds
	}
	start := time.Now()
	cfg := arenaConfig{binary: opts.binary, world: s.world, short: opts.short, lasts: opts.lasts, report: r, progress: progress}
	var err error
	if s.world.anew {
		for i := 0; i < rounds && err == nil; i++ {
			cfg.dir = filepath.Join(opts.dir, fmt.Sprintf("%s-%d", s.name, i+1))
			err = s.playIn(ctx, cfg, 1)
		}
	} else {
		cfg.dir = filepath.Join(opts.dir, s.name)
		err = s.playIn(ctx, cfg, rounds)
	}
	r.finish(err, time.Since(start))
	return r
}

func (s scenario) playIn(ctx context.Context, cfg arenaConfig, rounds int) error {
	a, err := newArena(ctx, cfg)
	if err != nil {
		return err
	}
	defer a.close()
	return s.play(ctx, a, rounds)
}

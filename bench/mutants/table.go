package main

import "strings"

// mutant is one bug and what has to see it.
type mutant struct {
	name string   // of its patch
	sees []string // checkers, any of which counts
	sim  scene    // a simulation in which it shows …
	test test     // … or, where none can, a test of an invariant

	first []uint64 // seeds that showed it before, to begin with; all others follow
}

// scene is what bench/sim's TestNarrow is told.
type scene struct {
	works, faults string
	rounds        int
	moves         bool     // one more node joins
	with          []string // patches that are no bug, applied to the clean build too
}

// test is a test of one package, and why no history can show the bug.
type test struct {
	pkg, run string
	why      string
}

// mutants are all bugs. The first fifteen are those of every merge.
var mutants = []mutant{
	{
		name: "same-incarnation", sees: []string{"order", "terms", "replay", "time"},
		sim: scene{works: "frozen,refill,patient", faults: "amnesia", rounds: 2},
	},
	{
		name: "same-address", sees: []string{"order", "terms", "replay", "time"},
		sim: scene{works: "frozen,refill,patient", faults: "newborn", rounds: 2},
	},
	{
		name: "no-target-check", sees: []string{"order", "terms", "replay", "time"},
		sim: scene{works: "frozen,refill,patient", faults: "newborn", rounds: 2},
	},
	{
		name: "ids-of-leader", sees: []string{"once", "exact", "replay", "replicas"},
		sim: scene{works: "again", faults: "kill-leader", rounds: 4},
	},
	{
		name: "refill-on-promotion", sees: []string{"window", "time"},
		sim: scene{works: "refill", faults: "kill-leader,isolate-leader", rounds: 3},
	},
	{
		name: "forget-elapsed", sees: []string{"starved", "kept"},
		sim: scene{works: "refill", faults: "gap", rounds: 4},
	},
	{
		name: "look-unconfirmed", sees: []string{"order", "hints", "linear"},
		sim: scene{works: "stare", faults: "late-replies", rounds: 3},
	},
	{
		name: "map-order", sees: []string{"replay", "once", "exact", "versions", "replicas"},
		sim: scene{works: "frozen,refill,patient", faults: "kill-leader,kill", rounds: 4, with: []string{"short-log"}},
	},
	{
		name: "float-refill", sees: []string{"replay"},
		sim: scene{works: "frozen,refill", faults: "kill", rounds: 1},
	},
	{
		name: "local-expiry", sees: []string{"once", "exact", "replay", "replicas"},
		sim: scene{works: "patient,copies", faults: "shatter,copies", rounds: 4},
	},
	{
		name: "charge-on-deny", sees: []string{"exact", "replay", "linear"},
		sim: scene{works: "patient,copies", faults: "kill", rounds: 1},
	},
	{
		name: "voter-at-once", sees: []string{"liveness", "epochs"},
		sim: scene{works: "refill", faults: "bounce", rounds: 2},
	},
	{
		name: "evict-not-full", sees: []string{"exact", "window", "replay", "final", "linear", "hints"},
		sim: scene{works: "frozen", faults: "kill", rounds: 1}, // not patient: its buckets would never be empty
	},
	{
		name: "old-snapshot", sees: []string{"TestOldSnapshotIsRefused"},
		test: test{
			pkg: "cluster/group", run: "TestOldSnapshotIsRefused",
			why: "one sender never has two snapshots for one replica under way, so a copy must be made by hand",
		},
	},
	{
		name: "retry-without-key", sees: []string{"replay", "exact", "linear"},
		sim: scene{works: "frozen,refill", faults: "reset", rounds: 3},
	},
	{
		name: "serve-after-seal", sees: []string{"order", "replay", "exact", "time", "linear", "final"},
		sim:   scene{works: "frozen,refill,patient", faults: "delay", rounds: 2, moves: true},
		first: []uint64{15},
	},
	{
		name: "slot-time-lost", sees: []string{"time", "window", "replay", "kept", "starved"},
		sim: scene{works: "frozen,refill", faults: "delay", rounds: 2, moves: true},
	},
	{
		name: "ids-left-behind", sees: []string{"once", "exact"},
		sim:   scene{works: "patient,copies", faults: "delay", rounds: 2, moves: true},
		first: []uint64{4},
	},
	{
		name: "epoch-too-early", sees: []string{"epochs"},
		sim: scene{works: "frozen,refill,patient", faults: "kill,kill-leader", rounds: 1},
	},
	{
		name: "lease-for-ever", sees: []string{"TestTokensOfALeaseAreVoidByTime"},
		test: test{
			pkg: "cluster", run: "TestTokensOfALeaseAreVoidByTime",
			why: "it takes clients that hold more for long than a second brings, and the load of no seed is leased",
		},
	},
}

// required is how many of mutants every merge must see.
const required = 15

// args are the scene as flags of TestNarrow.
func (s *scene) args() []string {
	a := []string{"-works", s.works, "-faults", s.faults, "-rounds", itoa(s.rounds)}
	if s.moves {
		a = append(a, "-moves")
	}
	return a
}

func (s *scene) String() string {
	return strings.Join(append(s.args(), s.with...), " ")
}

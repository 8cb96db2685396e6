package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBucketsOfADay: growth is compound, and idle expiry bounds it by what was taken.
func TestBucketsOfADay(t *testing.T) {
	day := 24 * time.Hour
	for _, x := range []struct {
		l    load
		want float64
	}{
		{load{Peak: 1e9, Admitted: 1, Keys: 500e6, Growth: 0.05}, 500e6},
		{load{Peak: 1e9, Admitted: 1, Keys: 500e6, Growth: 0.05, Days: 1}, 525e6},
		{load{Peak: 1e9, Admitted: 1, Keys: 100, Growth: 1, Days: 10}, 102_400},
		{load{Peak: 10, Admitted: 0.5, Keys: 1e9, IdleExpiry: day}, 432_000},
		{load{Peak: 10, Admitted: 0.5, Keys: 1e3, IdleExpiry: day}, 1e3},
		{load{Peak: 0, Admitted: 1, Keys: 1e3, IdleExpiry: 0}, 1e3},
	} {
		if got := x.l.buckets(); math.Abs(got-x.want) > 1e-6*x.want {
			t.Errorf("%+v: %g buckets, want %g", x.l, got, x.want)
		}
	}
}

// simple costs are round, so that what a node uses can be said by heart.
func simple() *constants {
	return &constants{
		CommitCPU: 1e-3, FollowCPU: 1e-3, TakeCPU: 1e-4, CopyCPU: 1e-4, DenyCPU: 1e-4, CommitTime: 1e-2, GroupRate: 1e9,
		BucketBytes: 50, LogBound: 1e6, LogSeconds: 60, LogHeld: 4, EntryBytes: 50, Heap: 2, NodeBytes: 1e6,
		AskBytes: 10, AnswerBytes: 20, DenialBytes: 30, CallBytes: 100, AppendBytes: 40, RoundBytes: 100, AckBytes: 50,
		PingRate: 20, PingBytes: 100, PingName: 10, SlotCost: 1000, ChunkBytes: 30, DumpBytes: 50, SlotTime: 0.1, MovesAtOnce: 10, Hysteresis: 10, Takeover: 0.1,
		RouteSlot: 2, RouteNode: 50, PolicyHeap: 3, PolicyPeak: 10,
	}
}

// third is the fullest of three nodes: it owns three of six slots, a tenth more than its
// part, rounded up.
func third() node {
	s := defaultShape()
	s.Slots, s.MaxNodes = 6, 6
	l := load{Peak: 200, Admitted: 1, Keys: 1000, Gathered: 10, Policies: 10, PolicyBytes: 100, Clients: 3}
	return node{l, s, simple(), 3}
}

// TestOneNodeByHeart: three of six slots, 100 takes/s in 50 commits.
func TestOneNodeByHeart(t *testing.T) {
	x := third()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9*math.Max(1, math.Abs(want)) {
			t.Errorf("%s: %g, want %g", what, got, want)
		}
	}
	near("part", x.part(), 0.5)
	near("takes", x.takes(), 100)
	near("commits", x.rounds(x.takes()), 50)
	near("cores", x.cores(x.whole()), 3*(0.05+0.01))
	near("cores, one gone", x.cores(x.gone()[0]), 3*(0.05+0.01))
	near("cores, all made anew", x.cores(x.gone()[1]), 4.5*(0.05+0.01))
	m := x.memory()
	near("buckets", m.Buckets, 3*500*50)
	near("log", m.Log, 3*100*50*60)
	near("spare", m.Spare, (m.Buckets+4*m.Log)/3) // the log waits for a snapshot of it
	near("policies", m.Policies, 3000)
	near("resident", m.Resident, 1e6+2*(m.Buckets+m.Log+m.Spare+m.Policies))
	tr := x.traffic(x.whole())
	pings := 2 * 20 * (100 + 2*10.0)
	near("callers in", tr.CallersIn, 100*10+10*100)
	near("callers out", tr.CallersOut, 100*20+10*100)
	near("nodes out", tr.NodesOut, 2*(100*40+50*100)+2*50*50+pings)
	near("nodes in", tr.NodesIn, tr.NodesOut)
	c := x.change()
	near("slots moved", c.Slots, 2)
	near("bytes moved", c.MoveBytes, 250*30)
	near("moved in", c.MoveTime, 10+0.02)
	near("levelled", c.LevelBytes, 2*1000.0/3*50)
	near("routing", c.Routing, 12+150)
	near("copied", c.CopyBytes, 3*500*50)
	near("arrival", x.arrival(), 500*50/100e6)
	near("reach of much", x.reach(), 800)
	x.c.LogBound = 5000
	near("reach of little", x.reach(), 4)
}

// TestLogIsBounded: however fast a group is.
func TestLogIsBounded(t *testing.T) {
	x := third()
	x.l.Peak = 1e6
	if m := x.memory(); m.Log != 3e6 {
		t.Errorf("log of three replicas: %g bytes, want 3e6", m.Log)
	}
}

// TestEachCanBind: what is scarce decides.
func TestEachCanBind(t *testing.T) {
	for _, x := range []struct {
		binds  string
		change func(*load, *shape, *constants)
	}{
		{"replicas", func(*load, *shape, *constants) {}},
		{"cpu", func(_ *load, s *shape, _ *constants) { s.Cores = 0.15 }},
		{"memory", func(_ *load, s *shape, _ *constants) { s.Memory = 3e6 }},
		{"network", func(_ *load, s *shape, c *constants) { s.Network, c.PingBytes, c.PingName = 25e3, 10, 1 }},
		{"group", func(_ *load, _ *shape, c *constants) { c.GroupRate = 100 }},
	} {
		n := third()
		n.s.Slots, n.s.MaxNodes = 1024, 256
		x.change(&n.l, &n.s, n.c)
		a := size(n.l, n.s, n.c)
		if a.Binds != x.binds || a.Clusters != 1 || !(node{n.l, n.s, n.c, a.Nodes}).fits() {
			t.Errorf("%s: %s binds, %d clusters of %d nodes", x.binds, a.Binds, a.Clusters, a.Nodes)
		}
		if a.Nodes > 3 && (node{n.l, n.s, n.c, a.Nodes - 1}).fits() {
			t.Errorf("%s: a node less than %d is enough", x.binds, a.Nodes)
		}
		if a.Nodes != max(3, a.ByCPU, a.ByMemory, a.ByNetwork, a.ByGroup) {
			t.Errorf("%s: %d nodes, alone %d, %d, %d and %d", x.binds, a.Nodes, a.ByCPU, a.ByMemory, a.ByNetwork, a.ByGroup)
		}
	}
}

// TestNothingIsEnough: policies that no node holds are said so, not searched for ever.
func TestNothingIsEnough(t *testing.T) {
	c, _ := measuredConstants()
	l := defaultLoad()
	l.Policies = 1e9
	a := size(l, defaultShape(), c)
	if a.Clusters != 0 || !strings.Contains(a.text(), "more than") {
		t.Errorf("%d clusters: %s", a.Clusters, a.text())
	}
}

// drawn is any load and shape, extreme ones too.
func drawn(t *rapid.T) (load, shape) {
	f := func(name string, least, most float64) float64 { return rapid.Float64Range(least, most).Draw(t, name) }
	l := load{
		Peak: math.Pow(10, f("peak", 0, 8)), Headroom: f("headroom", 0, 2), Admitted: f("admitted", 0, 1), Keys: math.Pow(10, f("keys", 0, 11)),
		Growth: f("growth", 0, 0.2), Days: f("days", 0, 60), IdleExpiry: time.Duration(f("expiry", 0, 1e15)), OwnIDs: f("own", 0, 1),
		Policies: f("policies", 0, 1e5), PolicyBytes: f("bytes", 0, 2000), Clients: f("clients", 0, 1e5), Gathered: f("gathered", 1, 100),
	}
	s := defaultShape()
	s.Replicas = rapid.SampledFrom([]int{1, 2, 3}).Draw(t, "replicas")
	s.Survive = s.Replicas == 3 && rapid.Bool().Draw(t, "survive")
	s.Slots = rapid.SampledFrom([]int{256, 1024, 16_384}).Draw(t, "slots")
	s.Cores, s.Memory = f("cores", 1, 64), f("memory", 16e9, 1e12)
	return l, s
}

// TestMoreNeverNeedsLess: more of anything never needs fewer clusters, nor, in as many,
// fewer nodes.
func TestMoreNeverNeedsLess(t *testing.T) {
	c, _ := measuredConstants()
	rapid.Check(t, func(t *rapid.T) {
		l, s := drawn(t)
		more := l
		x := rapid.Float64Range(1, 20).Draw(t, "times")
		switch what := rapid.SampledFrom([]string{"peak", "headroom", "keys", "days", "policies", "own"}).Draw(t, "what"); what {
		case "peak":
			more.Peak *= x
		case "headroom":
			more.Headroom *= x
		case "keys":
			more.Keys *= x
		case "days":
			more.Days *= x
		case "policies":
			more.Policies *= x
		case "own":
			more.OwnIDs = min(1, more.OwnIDs*x)
		}
		a, b := size(l, s, c), size(more, s, c)
		none := func(a answer) bool { return a.Clusters == 0 }
		switch {
		case none(b):
		case none(a), b.Clusters < a.Clusters, b.Clusters == a.Clusters && b.Nodes < a.Nodes:
			t.Fatalf("%+v needs %d × %d, more of it %d × %d", l, a.Clusters, a.Nodes, b.Clusters, b.Nodes)
		}
	})
}

// TestAnswersFit: no node of an answer is fuller than allowed, also with one gone.
func TestAnswersFit(t *testing.T) {
	c, _ := measuredConstants()
	rapid.Check(t, func(t *rapid.T) {
		l, s := drawn(t)
		a := size(l, s, c)
		if a.Clusters == 0 {
			return
		}
		p := a.PerNode
		if p.Cores > s.Use*s.Cores || s.Survive && p.CoresGone > s.UseGone*s.Cores || p.Memory.Resident > s.Use*s.Memory ||
			max(p.Traffic.in(), p.Traffic.out()) > s.Use*s.Network || a.Nodes > s.MaxNodes || a.Nodes < s.Replicas {
			t.Fatalf("%+v on %+v: %+v", l, s, a)
		}
	})
}

package trial

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/bench/nemesis"
	"github.com/ringlimit/ringlimit/bench/report"
	"github.com/ringlimit/ringlimit/policy"
)

// TestEveryKindHasAStage where it works: a kind that no safety trial plays is never
// mixed with others.
func TestEveryKindHasAStage(t *testing.T) {
	everything := crew{has: 0xff}
	for _, k := range nemesis.Kinds {
		played := false
		for _, a := range safetyActs(nemesis.Kinds, time.Hour) {
			if slices.ContainsFunc(a.kinds, func(o nemesis.Kind) bool { return o.Name == k.Name }) {
				played = played || k.Needs&^everything.abilities(a.ground) == 0 && a.ground.nodes >= k.Nodes
			}
		}
		if !played {
			t.Errorf("%s is in no act of a safety trial", k.Name)
		}
	}
}

// TestActsFillTheTime and none is too long, and what forgets is never mixed.
func TestActsFillTheTime(t *testing.T) {
	for _, lasts := range []time.Duration{time.Minute, time.Hour} {
		sum := time.Duration(0)
		for _, a := range safetyActs(nemesis.Kinds, lasts) {
			whole := a.lasts
			if !a.mixed {
				whole *= time.Duration(len(a.kinds))
			}
			sum += whole
			if whole > mostAct || len(a.kinds) == 0 {
				t.Errorf("act %s lasts %v with %d kinds", a.name, whole, len(a.kinds))
			}
			if a.mixed && slices.ContainsFunc(a.kinds, func(k nemesis.Kind) bool { return k.Loses }) {
				t.Errorf("act %s mixes what makes a cluster forget", a.name)
			}
		}
		if sum < lasts-time.Second || sum > lasts {
			t.Errorf("acts of %v last %v", lasts, sum)
		}
	}
}

func TestAloneSharesClustersOnEqualGround(t *testing.T) {
	kinds, err := nemesis.Find([]string{"kill", "pause", "delay", "duplicate", "kill-all", "split"})
	if err != nil {
		t.Fatal(err)
	}
	everything := crew{has: 0xff}
	var names []string
	for _, a := range everything.aloneActs(kinds, 15*time.Second) {
		names = append(names, a.name)
	}
	if want := []string{"kill, pause", "delay, duplicate", "kill-all", "split"}; !slices.Equal(names, want) {
		t.Errorf("acts %q, want %q", names, want)
	}
}

// TestWithoutNamespacesTheShortRunHasEightNemeses: one takes the place of what needs
// them, those that nothing comes near are left out, and all is said.
func TestWithoutNamespacesTheShortRunHasEightNemeses(t *testing.T) {
	c := crew{cfg: Config{Progress: io.Discard}, has: nemesis.Relays | nemesis.Cuts}
	kinds, err := nemesis.Find([]string{"kill-leader", "drain", "pause", "isolate", "loss", "churn", "split", "duplicate", "disk-full", "starve"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range c.aloneActs(c.usable(kinds), 15*time.Second) {
		if names = append(names, a.name); !a.ground.relayed {
			t.Errorf("%s has no relays", a.name)
		}
	}
	if want := []string{"kill-leader, drain, pause, isolate, delay, churn, duplicate", "split"}; !slices.Equal(names, want) {
		t.Errorf("acts %q, want %q", names, want)
	}
	if want := []string{"delay takes the place of loss", "disk-full is left out", "starve is left out"}; !slices.Equal(c.notes, want) {
		t.Errorf("notes %q, want %q", c.notes, want)
	}
	if kinds, _ = nemesis.Find([]string{"loss", "delay"}); len(c.usable(kinds)) != 1 {
		t.Error("delay is played twice")
	}
}

// TestKindsThatWouldBeAloneShareACluster that all can stand on: no relays where packets
// are lost, none of another clock or another loss beside them.
func TestKindsThatWouldBeAloneShareACluster(t *testing.T) {
	everything := crew{has: 0xff}
	for _, c := range []struct {
		kinds string
		want  []string
	}{
		{"kill loss split duplicate", []string{"kill, loss on {3 false false false}", "split, duplicate on {5 true false false}"}},
		{"loss duplicate", []string{"loss on {3 false false false}", "duplicate on {3 true false false}"}},
		{"split disk-full", []string{"split, disk-full on {5 false true false}"}},
		{"split kill-all clock-jump", []string{"split on {5 false false false}", "kill-all on {3 false false false}", "clock-jump on {3 false false true}"}},
	} {
		kinds, err := nemesis.Find(strings.Fields(c.kinds))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range everything.aloneActs(kinds, 15*time.Second) {
			got = append(got, fmt.Sprintf("%s on %v", a.name, a.ground))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.kinds, got, c.want)
		}
	}
}

// TestUnservedSeesALateProbe, and forgives what the machine did.
func TestUnservedSeesALateProbe(t *testing.T) {
	probe := func(at, waits time.Duration, answered bool) report.Request {
		return report.Request{Call: at, Return: at + waits, Answered: answered, Probe: true, Plan: "probe"}
	}
	second := time.Second
	for _, c := range []struct {
		name   string
		probes []report.Request
		stalls []report.Span
		want   int
	}{
		{"all in time", []report.Request{probe(3*second, second/2, true)}, nil, 0},
		{"one late", []report.Request{probe(3*second, second/2, true), probe(4*second, 2*second, true)}, nil, 1},
		{"one without an answer", []report.Request{probe(3*second, second/2, false)}, nil, 1},
		{"late before the bound", []report.Request{probe(second, 5*second, true), probe(3*second, 0, true)}, nil, 0},
		{"late in a stall", []report.Request{probe(3*second, 0, true), probe(5*second, 2*second, true)}, []report.Span{{From: 5 * second, To: 6 * second}}, 0},
		{"nobody asked", nil, nil, 1},
	} {
		h := &history{requests: c.probes}
		if got := h.unserved(2*second, 9*second, c.stalls); len(got) != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestAReleaseMayMeetItsOwnCopy: then it is not known by which the permit was freed.
func TestAReleaseMayMeetItsOwnCopy(t *testing.T) {
	for _, c := range []struct {
		kind check.Kind
		took time.Duration
		held bool
		want check.Outcome
	}{
		{check.Release, 5 * time.Millisecond, false, check.Denied},
		{check.Release, 1500 * time.Millisecond, false, check.Unknown},
		{check.Release, 1500 * time.Millisecond, true, check.Admitted},
		{check.Renew, 1500 * time.Millisecond, false, check.Denied},
	} {
		if o := check.Held(check.Op{Kind: c.kind, Call: time.Second, Return: time.Second + c.took}, c.held, sentOnce); o.Outcome != c.want || (o.Code != "") != (c.want == check.Unknown) {
			t.Errorf("%v after %v, held %v: outcome %v, code %q", c.kind, c.took, c.held, o.Outcome, o.Code)
		}
	}
}

// TestAllowSeesEveryChangeOfALeader, of group 0 too, and none in an answer that failed.
func TestAllowSeesEveryChangeOfALeader(t *testing.T) {
	answer := func(at time.Duration, group uint32, term uint64) report.Request {
		return report.Request{Call: at, Return: at + time.Millisecond, Answered: term > 0, Group: group, Term: term}
	}
	s := sceneOf(&history{requests: []report.Request{
		answer(1*time.Second, 0, 3), answer(2*time.Second, 0, 0), answer(3*time.Second, 1, 2), answer(4*time.Second, 0, 4),
	}})
	s.allow()
	if f := s.setup.Faults; len(f) != 1 || f[0].Span.From != 3*time.Second {
		t.Errorf("changes of leaders: %v", f)
	}
}

func TestPoliciesAreValid(t *testing.T) {
	set, err := policy.Parse("policies.yaml", policies)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range set.Policies {
		if p.ID != "probe" && p.Limit.Window == int64(time.Second) && p.Limit.Amount > maxRate {
			t.Errorf("policy %s is faster than maxRate", p.ID)
		}
	}
}

// TestNewEpochsAreNotedOnce, and judged by who was killed: here nobody was.
func TestNewEpochsAreNotedOnce(t *testing.T) {
	s := sceneOf(&history{began: time.Now()})
	show, newest := func(epoch uint32) *pb.StatusResponse {
		g := &pb.GroupStatus{Id: 7, Epoch: epoch}
		for _, n := range []string{"a", "b", "c"} {
			g.Members = append(g.Members, &pb.ReplicaStatus{Node: n, Role: "voter"})
		}
		return &pb.StatusResponse{Groups: []*pb.GroupStatus{g}}
	}, map[uint32]uint32{}
	for _, epoch := range []uint32{1, 1, 3, 2, 3} { // an old view in between
		s.see(show(epoch), newest)
	}
	if len(s.losses) != 2 || s.losses[0].Epoch != 2 || s.losses[1].Epoch != 3 {
		t.Errorf("losses %v", s.losses)
	}
	s.allow()
	if v := check.Epochs(&s.setup, nil); v.Checked != 1 || len(v.Findings) != 2 {
		t.Errorf("%+v", v)
	}
}

func sceneOf(h *history) *scene {
	return &scene{history: h, world: nemesis.NewWorld(&fleet.Fleet{}, 0, rand.New(rand.NewPCG(1, 1)), h.now)}
}

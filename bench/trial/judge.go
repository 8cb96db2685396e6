package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/nemesis"
	"github.com/ringlimit/ringlimit/bench/report"
)

const (
	equalIn   = 20 * time.Second
	searchFor = 2 * time.Second  // of each bucket
	goneBack  = 30 * time.Second // idle connections between nodes are kept for 20 s
	tooFew    = 200              // admissions
)

// exactly and spread tell the checkers of a bucket, once. The caller holds the
// history's lock.
func (s *scene) exactly(bucket string) { s.setup.Exactly = once(s.setup.Exactly, bucket) }

func (s *scene) spread(bucket string) { s.setup.Spread = once(s.setup.Spread, bucket) }

// once appends a name that is not the newest few already.
func once(list []string, name string) []string {
	if slices.Contains(list[max(0, len(list)-8):], name) {
		return list
	}
	return append(list, name)
}

// settle waits until the cluster is whole and its replicas are alike.
func (s *scene) settle(ctx context.Context) {
	if err := s.world.Whole(ctx, nemesis.HealIn); err != nil {
		s.breach("%v", err)
		return
	}
	differ, err := s.fleet.WaitEqual(ctx, equalIn)
	for _, d := range differ {
		s.breach("replicas: %s", d)
	}
	if err != nil {
		s.breach("%v", err)
	}
}

// judge runs the checkers and makes the report of the act.
func (s *scene) judge(ctx context.Context, before []check.Sample) *report.Act {
	ops := s.history.ops
	s.setup.Search, s.setup.MinAnswers = searchFor, tooFew
	s.allow()
	verdicts := check.All(&s.setup, ops)
	if len(before) > 0 {
		verdicts = append(verdicts, s.resources(ctx, before))
	}
	void := s.setup
	void.Faults = s.running.Faults
	empty := check.Void(&void, ops)
	if len(s.faults) == 0 {
		empty.Doubts = append(empty.Doubts, "no fault began")
	}
	a := &report.Act{
		Name: s.name, Nodes: s.ground.nodes, Lasted: s.history.now(), Faults: s.faults,
		Requests: s.history.requests, Stalls: s.stalls.list(), Counts: s.world.Counts(), Broken: s.broken, Void: empty.Doubts,
	}
	for _, v := range verdicts {
		a.Verdicts = append(a.Verdicts, verdictOf(v))
		s.keep(v, ops)
	}
	a.Finish()
	return a
}

func verdictOf(v check.Verdict) report.Verdict {
	out := report.Verdict{Checker: v.Checker, Checked: v.Checked, Doubts: v.Doubts}
	for _, f := range v.Findings {
		out.Findings = append(out.Findings, f.Explain())
	}
	return out
}

// keep writes the whole history of each bucket of which a promise was broken beside the
// logs of the nodes.
func (s *scene) keep(v check.Verdict, ops []check.Op) {
	for i, f := range v.Findings {
		if f.Bucket == "" {
			continue
		}
		var b strings.Builder
		fmt.Fprintln(&b, f.Explain())
		for _, o := range ops {
			if o.Bucket == f.Bucket {
				fmt.Fprintln(&b, o)
			}
		}
		name := filepath.Join(s.dir, fmt.Sprintf("history-%s-%d.txt", v.Checker, i+1))
		if err := os.WriteFile(name, []byte(b.String()), 0o644); err == nil {
			fmt.Fprintln(s.cfg.Progress, "trial: a broken promise: its history is", name)
		}
	}
}

// allow tells the checkers what was done on purpose: what was lost, and which bounds are
// wider for it. Each change of a leader may cost a replication delay, whatever brought it
// about. Of clocks that were set, slot time cannot be held against the checker's own: it ran
// at any rate from 0 to 1.5, and leapt.
func (s *scene) allow() {
	s.setup.Faults = slices.Clone(s.running.Faults)
	s.setup.LostTime = time.Second
	s.setup.Losses, s.setup.Memory = s.losses, s.world.Memory()
	s.setup.Still = !slices.ContainsFunc(s.kinds, func(k nemesis.Kind) bool { return k.Name == "churn" })
	if s.setup.Bent = s.bends(); s.setup.Bent {
		s.setup.Drift = nemesis.FastestClock
		s.setup.LostTime = nemesis.FrozenFor + time.Second
	}
	terms := map[uint32]uint64{}
	byReturn := slices.SortedFunc(slices.Values(s.history.requests), func(a, b report.Request) int { return int(a.Return - b.Return) })
	for _, r := range byReturn {
		if r.Term <= terms[r.Group] {
			continue
		}
		if terms[r.Group] > 0 {
			s.setup.Faults = append(s.setup.Faults, check.Fault{Name: "leader change", Span: check.Span{From: max(0, r.Call-time.Second), To: r.Return}})
		}
		terms[r.Group] = r.Term
	}
}

package sim

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
)

// How long the cluster may take, in virtual time.
const (
	bootsWithin  = 60 * time.Second
	servesWithin = 20 * time.Second        // after everything has healed; 12 s of it are raft's back-off
	healsWithin  = 60 * time.Second        // until every group is whole, and one cluster
	movesWithin  = 3 * time.Minute         // where nodes came or went
	restsWithin  = 15 * time.Second        // until what faults and load have left behind has ended
	lostTime     = 1300 * time.Millisecond // one replication delay: what a cut holds back comes after it, until a link counts as broken, at 1 s
	search       = 50 * time.Millisecond   // of real time for each bucket: many seeds find what one long search would
)

// outcome is what became of one run.
type outcome struct {
	plan     *plan
	failures []string // broken promises, each with its operations
	void     []string // why the run proves nothing
	doubts   []string
	ops      int
	admitted int
	unknown  int
	repeated int           // answers that a group remembered: their charge was not made again
	retries  uint64        // by client libraries
	epochs   bool          // a group lost its majority
	served   time.Duration // after the healing, until every group served
	healed   time.Duration // and until all was whole
	virtual  time.Duration
	real     time.Duration
	doubles  int64
	installs uint64 // snapshots of groups
	trace    *trace
	history  []check.Op
}

// weak says whether nothing was left open, or nothing was retried: such a run is not
// wrong, but it says little about retries, and few may be like it.
func (o *outcome) weak() bool { return o.unknown == 0 || o.retries == 0 || o.repeated == 0 }

func (o *outcome) fail(format string, args ...any) {
	o.failures = append(o.failures, fmt.Sprintf(format, args...))
}

// run plays one plan in a bubble of its own, and judges it outside.
func run(t *testing.T, p *plan) *outcome {
	o := &outcome{plan: p}
	begun, dir := time.Now(), shm(t)
	var k *work
	var seen []check.Replica
	var before, after []check.Sample
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p, dir)
		o.trace = w.trace
		w.trace.note("%v", p)
		defer func() {
			w.close()
			o.virtual = w.now()
		}()
		w.begin()
		if _, err := w.eventually(bootsWithin, w.unhealthy); err != nil {
			o.fail("the cluster does not begin: %v", err)
			return
		}
		time.Sleep(time.Second)
		before = sample()
		k = w.newWork()
		w.during(o, k)
		seen = w.settle(o, k)
		if !p.members() {
			after = rested(before)
		}
		o.doubles, o.installs = w.doubles.Load(), w.counts.SnapshotsReceived.Load()
		w.trace.note("%d snapshots of groups were installed", o.installs)
	})
	if k == nil {
		return o
	}
	k.setup.Search = search
	k.setup.LostTime = max(k.setup.LostTime, lostTime)
	verdicts := append(check.All(&k.setup, k.ops), check.Replicas(seen), check.Void(&k.setup, k.ops))
	if after != nil {
		verdicts = append(verdicts, check.Resources(before, after, check.DefaultSlack))
	}
	o.judge(k, verdicts)
	o.real = time.Since(begun)
	return o
}

// rested waits until no more goroutines run than before, and says how many do.
func rested(before []check.Sample) (after []check.Sample) {
	for begun := time.Now(); time.Since(begun) < restsWithin; time.Sleep(200 * time.Millisecond) {
		if after = sample(); len(check.Resources(before, after, check.DefaultSlack).Findings) == 0 {
			break
		}
	}
	return after
}

// sample counts the goroutines of this process, which is all nodes.
func sample() []check.Sample {
	return []check.Sample{{Node: "all", Goroutines: runtime.NumGoroutine()}}
}

// during plays the faults, beside members that come or go.
func (w *world) during(o *outcome, k *work) {
	stop := make(chan struct{})
	done := make(chan struct{}, 2)
	go func() { w.leaders(stop); done <- struct{}{} }()
	go func() {
		time.Sleep(w.plan.join)
		w.grow()
		if w.plan.drain {
			w.shrink()
		}
		if w.plan.remove {
			w.bury()
		}
		done <- struct{}{}
	}()
	k.setup.Faults = w.play()
	w.trace.note("all is healed")
	close(stop)
	var err error
	if o.served, err = k.served(servesWithin); err != nil {
		o.fail("liveness: %v", err)
	}
	<-done
	<-done
}

// settle waits for a whole cluster, asks for what is left, and looks at the replicas.
func (w *world) settle(o *outcome, k *work) (seen []check.Replica) {
	within := healsWithin
	if w.plan.members() {
		within = movesWithin
	}
	var err error
	if o.healed, err = w.eventually(within, w.unhealthy); err != nil {
		o.fail("liveness: %v", err)
	}
	w.trace.note("all is whole after %v", o.healed)
	r := w.status()
	w.losses(r)
	for _, g := range r.GetGroups() {
		for _, q := range w.silent {
			k.setup.Silences = append(k.setup.Silences, check.Silence{Group: g.Id, Span: q})
		}
	}
	time.Sleep(time.Second) // what broke last has been met by requests, and so has its end
	k.use()
	k.fill()
	k.end()
	if err := k.learn(); err != nil {
		o.fail("the versions of the changed policy: %v", err)
	}
	for range 20 {
		time.Sleep(50 * time.Millisecond)
		seen = append(seen, w.replicas()...)
	}
	w.losses(w.status())
	k.setup.Losses, k.setup.Still, k.setup.Memory = w.lost, !w.plan.members() && !w.moved, &w.memory
	o.epochs = len(w.lost) > 0
	return seen
}

// judge turns verdicts into an outcome.
func (o *outcome) judge(k *work, verdicts []check.Verdict) {
	o.history = k.ops
	for i := range k.ops {
		switch k.ops[i].Outcome {
		case check.Admitted:
			o.admitted++
		case check.Unknown:
			o.unknown++
		}
		if k.ops[i].Witness.Repeated {
			o.repeated++
		}
	}
	o.ops, o.retries = len(k.ops), k.retries
	for _, v := range verdicts {
		for _, f := range v.Findings {
			o.fail("%s", f.Explain())
		}
		if v.Checker == "void" {
			o.void = v.Doubts
		} else {
			o.doubts = append(o.doubts, v.Doubts...)
		}
		if v.Checker == "replicas" && v.Checked == 0 && o.failures == nil {
			o.void = append(o.void, "no two replicas were seen at one index")
		}
	}
	for _, f := range o.trace.faults {
		o.fail("%s", f)
	}
}

// name is what a failure is counted under.
func failureName(failure string) string {
	name, _, _ := strings.Cut(failure, ":")
	return name
}

// kinds are the names of the failures of a run.
func (o *outcome) kinds() []string {
	var names []string
	for _, f := range o.failures {
		if n := failureName(f); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

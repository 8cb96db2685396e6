package trial

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/nemesis"
	"github.com/ringlimit/ringlimit/bench/report"
)

const (
	atOnce     = 3                // faults of a mix
	mixedFor   = 15 * time.Second // one of them, at most
	stopWithin = 2 * time.Minute
	servesIn   = 2 * time.Second // liveness: after the fault began
)

// breakIt does to the cluster what the act says.
func (s *scene) breakIt(ctx context.Context) {
	if s.mixed {
		s.mix(ctx)
		return
	}
	for _, k := range s.kinds {
		for range 10 {
			err := s.fault(ctx, ctx, k, s.lasts)
			if !errors.Is(err, nemesis.ErrNotNow) || !waitFor(ctx, time.Second) {
				break
			}
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// mix keeps one to three faults going, each of a kind drawn at random, beginning at
// any time and lasting for any.
func (s *scene) mix(ctx context.Context) {
	mixing, cancel := context.WithTimeout(ctx, s.lasts)
	defer cancel()
	var lanes sync.WaitGroup
	for n := range atOnce {
		r := rand.New(rand.NewPCG(s.cfg.Seed, uint64(s.number*atOnce+n)<<32))
		lanes.Go(func() {
			for waitFor(mixing, time.Duration(r.Int64N(int64(n+1)*int64(4*time.Second)))) {
				k := s.kinds[r.IntN(len(s.kinds))]
				_ = s.fault(ctx, mixing, k, time.Second+time.Duration(r.Int64N(int64(mixedFor))))
			}
		})
	}
	lanes.Wait()
	if err := s.world.Whole(ctx, nemesis.HealIn); err != nil && ctx.Err() == nil {
		s.breach("after all faults: %v", err)
	}
}

// fault plays one nemesis for a time, or until while ends; ctx is the trial's.
func (s *scene) fault(ctx, while context.Context, k nemesis.Kind, lasts time.Duration) error {
	n := k.New(s.world)
	from := s.history.now()
	what, err := n.Start(while)
	if err == nil {
		fmt.Fprintf(s.cfg.Progress, "trial: %6.1f s %s: %s\n", from.Seconds(), k.Name, what)
		s.hold(while, k, lasts)
	}
	// In an interrupted trial, whose cluster ends too, only what would outlast it is
	// put back.
	ending, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	stopped := n.Stop(ending)
	ended := s.history.now() // what it had to undo is part of the fault: a node that joined may be drained again
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if stopped != nil {
		s.breach("%s does not end: %v", k.Name, stopped)
	}
	if errors.Is(err, nemesis.ErrNotNow) {
		return err
	}
	if err != nil {
		s.breach("%s does not begin: %v", k.Name, err)
		return err
	}
	if !s.mixed {
		if err := n.Healed(ending); err != nil {
			s.breach("%s: %v", k.Name, err)
		}
	}
	to := s.history.now()
	fmt.Fprintf(s.cfg.Progress, "trial: %6.1f s %s: over after %.1f s, healed %.1f s after that\n", to.Seconds(), k.Name, (ended - from).Seconds(), (to - ended).Seconds())
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	s.faults = append(s.faults, report.Fault{Name: k.Name, What: what, From: from, To: ended, Healed: to})
	s.running.Faults = append(s.running.Faults, check.Fault{Name: k.Name, Span: check.Span{From: from, To: to}})
	if k.Name == "clock-jump" {
		jumped := uint64(nemesis.JumpAhead.Seconds()) * maxRate
		for name := range s.setup.Limits {
			if slices.ContainsFunc(ratePlans, func(plan string) bool { return strings.HasSuffix(name, "/"+plan) }) {
				s.setup.Given = append(s.setup.Given, check.Given{Bucket: name, Tokens: jumped, Span: check.Span{From: from, To: to}})
			}
		}
	}
	return nil
}

// hold waits for the time of a fault, and asks of one that stays that every group
// serves, and goes on doing so.
func (s *scene) hold(ctx context.Context, k nemesis.Kind, lasts time.Duration) {
	from := s.history.now()
	waitFor(ctx, lasts)
	to := s.history.now()
	if k.Loses && s.ground.nodes == 3 {
		for _, g := range s.groups {
			s.setup.Silences = append(s.setup.Silences, check.Silence{Group: g, Span: check.Span{From: from + time.Second, To: to}})
		}
	}
	if s.stays {
		for _, b := range s.history.unserved(from+servesIn, to, s.stalls.list()) {
			s.breach("%s: %s", k.Name, b)
		}
	}
}

// breach notes a broken promise that the history does not show.
func (s *scene) breach(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	fmt.Fprintln(s.cfg.Progress, "trial: VIOLATION:", text)
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	s.broken = append(s.broken, text)
}

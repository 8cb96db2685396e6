package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// playTwoOfThree kills two nodes at once. What the third still has is not known
// to be all, so it must not answer from it; nor may the two that return empty.
func playTwoOfThree(ctx context.Context, a *arena, rounds int) error {
	for range rounds {
		survivor := a.fleet.Nodes[rand.IntN(len(a.fleet.Nodes))]
		if err := a.loseMajority(ctx, "all but "+survivor.Name, survivor); err != nil {
			return err
		}
		a.report.Rounds++
	}
	return nil
}

// loseMajority kills all nodes but one and starts them again.
func (a *arena) loseMajority(ctx context.Context, where string, survivor *fleet.Node) error {
	keys, err := a.probes(ctx, "ten")
	if err != nil {
		return err
	}
	for _, k := range keys {
		a.spend(ctx, where, k, 4, 4)
	}
	var victims []*fleet.Node
	for _, n := range a.fleet.Nodes {
		if n != survivor {
			victims = append(victims, n)
		}
	}
	apart, err := killTogether(victims)
	if err != nil {
		return err
	}
	if apart > 50*time.Millisecond {
		a.report.doubt("%s: killed %v apart", where, apart)
	}
	if err := pause(ctx, 2*time.Second); err != nil { // the lease ends
		return err
	}
	a.refused(ctx, where+", two dead", []*fleet.Node{survivor}, keys, 5*time.Second)
	for _, n := range victims {
		if err := n.Start(); err != nil {
			return err
		}
	}
	if err := pause(ctx, 3*time.Second); err != nil { // they are back in the control group
		return err
	}
	a.refused(ctx, where+", both back", a.fleet.Nodes, keys, 10*time.Second)
	a.lossIsTold(ctx, where)
	return ctx.Err()
}

// killTogether kills nodes and returns how far apart the signals were.
func killTogether(nodes []*fleet.Node) (apart time.Duration, err error) {
	start := time.Now()
	for _, n := range nodes {
		if err := n.KillNow(); err != nil {
			return 0, err
		}
		apart = time.Since(start)
	}
	for _, n := range nodes {
		if err := n.Kill(); err != nil {
			return 0, err
		}
	}
	return apart, nil
}

// refused asks for every key at each node until the time is over: every answer
// is a broken promise, and the refusals must say that there is no leader.
func (a *arena) refused(ctx context.Context, where string, nodes []*fleet.Node, keys map[uint32]key, lasts time.Duration) {
	noLeader, others := 0, map[string]int{}
	for end := time.Now().Add(lasts); time.Now().Before(end) && ctx.Err() == nil; {
		for group, k := range keys {
			for _, n := range nodes {
				short, cancel := context.WithTimeout(ctx, time.Second)
				d, err := direct(short, n, k, 1)
				cancel()
				switch {
				case err == nil:
					a.report.violate(where, fmt.Sprintf("group %d answered at node %s: %v", group, n.Name, d))
				case errors.Is(err, fault.NoLeader):
					noLeader++
				default:
					others[err.Error()]++
				}
			}
		}
		_ = pause(ctx, 200*time.Millisecond)
	}
	total := noLeader
	for text, n := range others {
		total += n
		a.say("%s: %d refusals with: %s", where, n, text)
	}
	if total < len(keys) {
		a.report.doubt("%s: only %d takes", where, total)
	} else if noLeader*10 < total*9 {
		a.report.violate(where, fmt.Sprintf("%d of %d refusals said no leader, want nearly all", noLeader, total))
	}
	a.report.show(where, "%d refused", total)
}

// lossIsTold wants status to end with 4 and to name every group and its loss.
func (a *arena) lossIsTold(ctx context.Context, where string) {
	code, out, err := a.fleet.StatusCommand(ctx)
	if err != nil || code != 4 {
		a.report.violate(where, fmt.Sprintf("rlnode status: exit code %d (%v), want 4: %.200s", code, err, out))
	}
	st, err := a.fleet.Status(ctx)
	if err != nil {
		a.report.violate(where, fmt.Sprintf("status after the loss: %v", err))
		return
	}
	for _, g := range st.GetGroups() {
		said := slices.Concat([]string{g.GetProblem()}, st.GetProblems())
		if g.GetHealthy() || !strings.Contains(strings.ToLower(strings.Join(said, " ")), "lost") {
			a.report.violate(where, fmt.Sprintf("status does not say that group %d is lost: %q", g.GetId(), said))
		}
	}
	a.report.show("status says", "%q", st.GetProblems())
}

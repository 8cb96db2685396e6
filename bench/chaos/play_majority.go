package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// losses are buckets of each on_state_loss, all spent in part, and some that
// nobody has seen.
type losses struct {
	a      *arena
	used   map[string][]key // by plan
	unseen map[string][]key
	spent  int       // of each that is used
	slow   []key     // one emptied, one never seen
	lost   time.Time // when nothing was admitted any more
	probes map[uint32]key
	before layout
}

// prepareLoss spends what will be lost.
func (a *arena) prepareLoss(ctx context.Context) (*losses, error) {
	const perPlan = 12 // enough to be in every group
	l := &losses{a: a, used: map[string][]key{}, unseen: map[string][]key{}, spent: 4}
	var err error
	if l.probes, err = a.probes(ctx, "ten"); err != nil {
		return nil, err
	}
	if l.before, err = a.layout(ctx); err != nil {
		return nil, err
	}
	for _, plan := range []string{"ten", "full", "salvage"} {
		for range perPlan {
			l.used[plan] = append(l.used[plan], a.fresh(plan))
			l.unseen[plan] = append(l.unseen[plan], a.fresh(plan))
		}
		for i, recs := range a.each(ctx, l.used[plan], l.spent) {
			if n, _, failed := tally(recs); n != l.spent || failed > 0 {
				return nil, fmt.Errorf("plan %s, key %d: %d admitted, %d failed before the loss", plan, i, n, failed)
			}
		}
	}
	l.slow = append(l.slow, a.fresh("slow"), a.fresh("slow"))
	a.volley(ctx, l.slow[0], 120, 60, nil)
	return l, ctx.Err()
}

// judge wants each policy's on_state_loss in the new epochs. All was at rest when it
// was lost, so a survivor or the newest checkpoint knows it all.
func (l *losses) judge(ctx context.Context, where string) error {
	a, r := l.a, l.a.report
	r.violate(where, l.refill(ctx)...)
	r.violate(where+", empty, used", l.admitted(ctx, l.used["ten"], 0)...)
	r.violate(where+", empty, never seen", l.admitted(ctx, l.unseen["ten"], 0)...)
	r.violate(where+", full, used", l.admitted(ctx, l.used["full"], idleBudget)...)
	r.violate(where+", full, never seen", l.admitted(ctx, l.unseen["full"], idleBudget)...)
	r.violate(where+", salvage, used", l.admitted(ctx, l.used["salvage"], idleBudget-l.spent)...)
	r.violate(where+", salvage, never seen", l.admitted(ctx, l.unseen["salvage"], idleBudget)...)
	after, err := a.layout(ctx)
	if err != nil {
		return err
	}
	for id, epoch := range l.before.epochs {
		if after.epochs[id] != epoch+1 {
			r.violate(where, fmt.Sprintf("group %d is in epoch %d, was in %d before the loss", id, after.epochs[id], epoch))
		}
	}
	if n := moved(l.before.slots, after.slots); n > 0 || l.before.cluster != after.cluster {
		r.violate(where, fmt.Sprintf("%d slots moved; cluster %s, was %s", n, after.cluster, l.before.cluster))
	}
	return ctx.Err()
}

// admitted takes more from each key than it can have, and wants so many admitted.
func (l *losses) admitted(ctx context.Context, keys []key, want int) (broken []string) {
	wrong, example := 0, 0
	for i, recs := range l.a.each(ctx, keys, idleBudget+2) {
		n, _, failed := tally(recs)
		if n != want || failed > 0 {
			wrong, example = wrong+1, n
		}
		for _, f := range check.Codes(&check.Setup{Strict: true}, keys[i].ops(recs)).Findings {
			broken = append(broken, f.String())
		}
	}
	if wrong > 0 {
		broken = append(broken, fmt.Sprintf("%d of %d keys admitted something else than %d of %d, one of them %d", wrong, len(keys), want, idleBudget+2, example))
	}
	return broken
}

// refill wants from buckets of 1 a second, one emptied before the loss and one
// never seen, what has come in since the loss, and no more.
func (l *losses) refill(ctx context.Context) (broken []string) {
	for i, k := range l.slow {
		n, _, failed := tally(l.a.volley(ctx, k, 120, 60, nil))
		r := rate{perSecond: 1}
		if most := r.most(time.Since(l.lost)); n > most || failed > 0 {
			broken = append(broken, fmt.Sprintf("bucket %d of 1 a second: %d admitted (%d failed) %v after the loss, want at most %d", i, n, failed, time.Since(l.lost), most))
		}
	}
	return broken
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
	a.report.show("refused by the survivor", "%d takes", total)
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
		if g.GetHealthy() || !strings.Contains(strings.Join(said, " "), "replicas do not answer") {
			a.report.violate(where, fmt.Sprintf("status does not say which replicas of group %d do not answer: %q", g.GetId(), said))
		}
	}
	a.report.show("status names", "%d problems", len(st.GetProblems()))
}

package main

import (
	"context"
	"fmt"
	"time"
)

// replicationDelay is the most that a change of leader may cost a refill.
const replicationDelay = 250 * time.Millisecond

// playRefillFailover: an empty bucket of 10 a second, the leader dead for 3 s,
// then five leaders killed in a row.
func playRefillFailover(ctx context.Context, a *arena, rounds int) error {
	for i := range rounds {
		where := fmt.Sprintf("round %d", i+1)
		k := a.fresh("refill")
		recs := a.volley(ctx, k, 150, 150, nil)
		if n, denied, failed := tally(recs); failed > 0 || denied == 0 {
			a.report.doubt("%s: not emptied: %d admitted, %d failed", where, n, failed)
			continue
		}
		if err := a.refillWhileDead(ctx, where, k, recs); err != nil {
			return err
		}
		if err := a.refillOverKills(ctx, where); err != nil {
			return err
		}
		a.report.Rounds++
	}
	return nil
}

// refillWhileDead kills the leader of an emptied key, waits, and takes.
func (a *arena) refillWhileDead(ctx context.Context, where string, k key, first []record) error {
	begin, empty := span(first)
	node, err := a.killLeaderOf(ctx, k)
	if err != nil {
		return err
	}
	if err := pause(ctx, 3*time.Second); err != nil {
		return err
	}
	second := a.volley(ctx, k, 60, 60, nil)
	again, end := span(second)
	n1, _, _ := tally(first)
	n2, _, failed := tally(second)
	if failed > 0 {
		a.report.violate(where, fmt.Sprintf("%d takes failed with the leader dead for 3 s", failed))
	} else if least := refillRate.least(again-empty, replicationDelay); n2 < least {
		a.report.violate(where, fmt.Sprintf("leader dead for %v: admitted %d, want at least %d", again-empty, n2, least))
	}
	if most := refillRate.most(end - begin); n1+n2 > most {
		a.report.violate(where, fmt.Sprintf("admitted %d in %v, want at most %d", n1+n2, end-begin, most))
	}
	a.report.show("admitted", "%d after %v without the leader", n2, (again - empty).Round(time.Millisecond))
	if err := a.fleet.Node(node).Start(); err != nil {
		return err
	}
	_, err = a.healthy(ctx, where)
	return err
}

// refillOverKills drains a key all the time while five of its leaders are
// killed: what was admitted in all must follow from the time alone.
func (a *arena) refillOverKills(ctx context.Context, where string) error {
	const kills = 5
	k := a.fresh("refill")
	a.volley(ctx, k, 1, 1, nil) // the bucket exists
	load := a.startLoad(ctx, []key{k}, loadPlan{workers: 4, pace: 20 * time.Millisecond, deadline: patience})
	for range kills {
		node, err := a.killLeaderOf(ctx, k)
		if err == nil {
			err = pause(ctx, 500*time.Millisecond)
		}
		if err == nil {
			err = a.fleet.Node(node).Start()
		}
		if err == nil {
			_, err = a.healthy(ctx, where)
		}
		if err != nil {
			load.stop()
			return err
		}
	}
	recs := load.stop()[k]
	recs = append(recs, a.volley(ctx, k, 120, 120, nil)...)
	begin, end := span(recs)
	n, _, failed := tally(recs)
	if failed > 0 {
		a.report.violate(where, fmt.Sprintf("%d of %d takes failed over %d kills", failed, len(recs), kills))
	}
	if most := refillRate.most(end - begin); n > most {
		a.report.violate(where, fmt.Sprintf("%d kills: admitted %d in %v, want at most %d", kills, n, end-begin, most))
	}
	// The last volley empties the bucket, so all that came in was taken; the
	// token of the first take is not in recs.
	lost := kills * replicationDelay
	least := int(refillRate.burst) - 2 + int(refillRate.perSecond*(end-begin-lost).Seconds()*(1-drift))
	if failed == 0 && n < least {
		a.report.violate(where, fmt.Sprintf("%d kills: admitted %d in %v, want at least %d", kills, n, end-begin, least))
	}
	a.report.show("over 5 kills", "%d in %v", n, (end - begin).Round(time.Millisecond))
	return nil
}

// killLeaderOf kills the leader of a key's group and returns its name.
func (a *arena) killLeaderOf(ctx context.Context, k key) (string, error) {
	_, leader, err := a.leaderOf(ctx, k)
	if err != nil {
		return "", err
	}
	return leader.Name, leader.Kill()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// restoredNodes is another number than that of the cluster backed up.
const restoredNodes = 4

// playRestore backs a cluster up under load, ends it, and makes another one of the
// file.
func playRestore(ctx context.Context, a *arena, rounds int) error {
	const where = "restored"
	t := a.startTraffic(ctx)
	err := pause(ctx, time.Second)
	spent := t.load.admitted() // answered before the backup begins
	file := filepath.Join(a.dir, "backup")
	var code int
	var out []byte
	if err == nil {
		code, out, err = a.fleet.Command(ctx, "backup", "-o", file)
	}
	if err != nil || code != 0 {
		t.load.stop()
		return errors.Join(err, fmt.Errorf("rlnode backup: exit code %d: %.300s", code, out))
	}
	a.say("%s", out)
	before, err := a.layout(ctx)
	if err != nil {
		t.load.stop()
		return err
	}
	t.stop(ctx, "while it was backed up")
	for _, n := range a.fleet.Nodes {
		if err := n.Kill(); err != nil {
			return err
		}
	}
	start := time.Now()
	other, err := a.fleet.Restore(ctx, restoredNodes, file)
	if err != nil {
		return err
	}
	defer other.Close()
	a.report.show("serving", "%v after its start", time.Since(start).Round(100*time.Millisecond))
	c, err := newLibrary(other.GRPC())
	if err != nil {
		return err
	}
	defer c.close()
	b := &arena{fleet: other, caller: c, report: a.report, progress: a.progress, stalls: a.stalls, name: a.name, short: a.short, began: a.began, run: a.run}
	after, err := b.layout(ctx)
	if err != nil {
		return err
	}
	if after.cluster == before.cluster {
		a.report.violate(where, "it has the id of the cluster backed up")
	}
	a.report.violate(where, checkBalance(after, after.nodes)...)
	for i, recs := range b.each(ctx, t.idle, idleBudget) {
		if n, _, failed := tally(recs); n != idleBudget-2 || failed > 0 {
			a.report.violate(where, fmt.Sprintf("idle key %d: %d admitted, %d failed, want %d", i, n, failed, idleBudget-2))
		}
	}
	for _, k := range t.busy {
		n, _, failed := tally(b.volley(ctx, k, busyBudget+50, 64, nil))
		if n+spent[k] > busyBudget || n == 0 || failed > 0 {
			a.report.violate(where, fmt.Sprintf("%d admitted (%d failed), %d before the backup began: more than %d in all, or none", n, failed, spent[k], busyBudget))
		}
	}
	a.report.Rounds++
	return ctx.Err()
}

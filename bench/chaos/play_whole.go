package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// checkpointEvery is short, so that a scenario need not wait half a minute for one.
const checkpointEvery = time.Second

// playWhole kills all nodes. What they agreed on is on disk, and so are the buckets
// of policies that ask for it, as they were when the last checkpoint began.
func playWhole(ctx context.Context, a *arena, rounds int) error {
	const where = "all killed"
	if err := a.changePolicies(ctx); err != nil {
		return err
	}
	l, err := a.prepareLoss(ctx)
	if err != nil {
		return err
	}
	policies, audit, err := a.agreed(ctx)
	if err != nil {
		return err
	}
	if !strings.Contains(string(audit), "delete") {
		return fmt.Errorf("the audit does not tell what was done: %.300s", audit)
	}
	// One interval for a checkpoint to be due, one for it to be written.
	if err := pause(ctx, 2*checkpointEvery+time.Second); err != nil {
		return err
	}
	apart, err := killTogether(a.fleet.Nodes)
	if err != nil {
		return err
	}
	l.lost = time.Now()
	a.say("%s within %v", where, apart)
	for _, n := range a.fleet.Nodes {
		if err := n.Start(); err != nil {
			return err
		}
	}
	took, err := a.healthyWithin(ctx, where, replacedIn)
	if err != nil {
		return err
	}
	a.report.show("serving again", "%v after the restart", took.Round(100*time.Millisecond))
	policiesNow, auditNow, err := a.agreed(ctx)
	if err != nil {
		return err
	}
	if string(policies) != string(policiesNow) {
		a.report.violate(where, fmt.Sprintf("policies were %.300s and are %.300s", policies, policiesNow))
	}
	if string(audit) != string(auditNow) {
		a.report.violate(where, fmt.Sprintf("the audit was %.300s and is %.300s", audit, auditNow))
	}
	a.report.Rounds++
	return l.judge(ctx, where)
}

// changePolicies makes something for the audit to tell.
func (a *arena) changePolicies(ctx context.Context) error {
	for _, args := range [][]string{
		{"override", "set", "--policy", "wide", "--tenant", "somebody", "--scale", "2", "--for", "24h"},
		{"policy", "delete", "refill"},
	} {
		code, out, err := a.fleet.Command(ctx, args...)
		if err != nil || code != 0 {
			return errors.Join(err, fmt.Errorf("rlnode %s: exit code %d: %s", strings.Join(args, " "), code, out))
		}
	}
	return nil
}

// agreed returns the policies and the audit as the command line shows them.
func (a *arena) agreed(ctx context.Context) (policies, audit []byte, err error) {
	for _, c := range []struct {
		args []string
		into *[]byte
	}{
		{[]string{"policy", "list", "-o", "json"}, &policies},
		{[]string{"policy", "audit", "-o", "json"}, &audit},
	} {
		code, out, err := a.fleet.Command(ctx, c.args...)
		if err != nil || code != 0 {
			return nil, nil, errors.Join(err, fmt.Errorf("rlnode %s: exit code %d: %s", strings.Join(c.args, " "), code, out))
		}
		if !json.Valid(out) {
			return nil, nil, fmt.Errorf("rlnode %s: not JSON: %.100s", strings.Join(c.args, " "), out)
		}
		*c.into = out
	}
	return policies, audit, nil
}

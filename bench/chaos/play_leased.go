package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// leaseTime is how long nodes let clients spend what they hold.
const leaseTime = time.Second

const (
	spenders   = 8
	steadyFrom = 0.8             // of its rate a bucket must give whoever wants more
	standStill = 3 * time.Second // a stopped leader: longer than leaseTime
	surgeIn    = 3 * time.Second // what spenders that may take all they want must do
	killedEach = 3               // spenders, in a round
	heldEach   = 3 * spentAtOnce // what one that is killed holds, at least
	someOf     = 0.2             // of the burst, that makes it worth leasing again
	handful    = 2.25            // rates that all hold together when they are stopped: more than the bound allows for
)

// leased is a crowd at a leased bucket, and what was done to it.
type leased struct {
	*crowd
	limit check.Limit
	rate  float64 // tokens a second

	killed, lost int // spenders, and what they held
	stood        int64
	lowest       float64 // share of the rate in a quiet time
}

// playLeased kills clients that hold tokens and leaders that grant some, and stops both
// for longer than a lease lasts. All that was admitted, in any interval, is within burst +
// rate × (its length + leaseTime), and between the faults the bucket gives its rate.
func playLeased(ctx context.Context, a *arena, rounds int) error {
	c, err := a.gather(ctx, "leased", spenders)
	if err != nil {
		return err
	}
	defer c.close()
	l := &leased{crowd: c, limit: limits()["leased"], lowest: 1}
	l.rate = float64(l.limit.Amount) / time.Duration(l.limit.Window).Seconds()
	for i := range rounds {
		if err := l.round(ctx, fmt.Sprintf("round %d", i+1)); err != nil {
			return err
		}
	}
	if err := c.end(); err != nil {
		return err
	}
	return l.judge()
}

// round is all of it once.
func (l *leased) round(ctx context.Context, where string) error {
	for _, part := range []func(context.Context, string) error{l.stopSpenders, l.steady, l.killAll, l.steady, l.stopLeader, l.steady} {
		if err := part(ctx, where); err != nil {
			return err
		}
	}
	l.a.report.Rounds++
	return nil
}

// steady wants a bucket that all want more of to give its rate.
func (l *leased) steady(ctx context.Context, where string) error {
	if err := l.order(true); err != nil {
		return err
	}
	if err := l.goOn(ctx, time.Second); err != nil { // the burst goes first
		return err
	}
	from, lasts := time.Since(l.began), time.Duration(l.a.few(5, 2))*time.Second
	if err := l.goOn(ctx, lasts); err != nil {
		return err
	}
	to, tokens := time.Since(l.began), 0
	for _, s := range l.live {
		for _, t := range s.told {
			if t.Admitted && t.Return >= from && t.Return < to {
				tokens += spentAtOnce
			}
		}
	}
	share := float64(tokens) / (l.rate * (to - from).Seconds())
	if l.lowest = min(l.lowest, share); share < steadyFrom {
		l.a.report.violate(where, fmt.Sprintf("%d tokens in a quiet time of %v, %.2f of the rate; want at least %.2f", tokens, to-from, share, steadyFrom))
	}
	return nil
}

// refilled waits until the bucket has a part of its burst.
func (l *leased) refilled(ctx context.Context, part float64) error {
	for want := uint64(part * float64(l.limit.Burst)); ; {
		d, err := l.a.caller.take(ctx, l.flags.key, 0)
		if err != nil {
			return fmt.Errorf("look at what is left: %w", err)
		}
		if d.Remaining >= want {
			return nil
		}
		if err := l.goOn(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// surge lets all rest until the bucket has a part of its burst again, and then take what
// they want, until so much is held and asked for.
func (l *leased) surge(ctx context.Context, where string, part float64, until func() bool) error {
	if err := l.order(false); err != nil {
		return err
	}
	if err := l.refilled(ctx, part); err != nil {
		return err
	}
	if err := l.order(true); err != nil {
		return err
	}
	most := int64(0)
	met, err := l.until(ctx, surgeIn, func() bool {
		most = max(most, l.held())
		return until()
	})
	if !met {
		l.a.report.doubt("%s: at most %d units were held, %d leases asked for: too few", where, most, l.asked())
	}
	return err
}

// granting says, when it is called again, whether leases are being asked for.
func (l *leased) granting() func() bool {
	before := l.asked()
	return func() bool { return l.asked() > before+1 && l.held() > 0 }
}

// killAll kills the leader at a grant, and clients with tokens in hand.
func (l *leased) killAll(ctx context.Context, where string) error {
	_, leader, err := l.a.leaderOf(ctx, l.flags.key)
	if err != nil {
		return err
	}
	if err := l.surge(ctx, where, someOf, l.granting()); err != nil {
		return err
	}
	if err := leader.Kill(); err != nil {
		return err
	}
	before := l.killed
	for end := time.Now().Add(surgeIn); l.killed < before+killedEach && time.Now().Before(end); {
		if err := l.killHolder(ctx); err != nil {
			return err
		}
	}
	if l.killed == before {
		l.a.report.doubt("%s: no client held a token", where)
	}
	if err := l.join(ctx, l.killed-before); err != nil {
		return err
	}
	if err := leader.Start(); err != nil {
		return err
	}
	l.a.say("%s: leader %s killed at a grant, and %d clients; %d tokens lost until now", where, leader.Name, l.killed-before, l.lost)
	_, err = l.a.healthy(ctx, where)
	return err
}

// killHolder kills a client that holds something, as soon as there is one.
func (l *leased) killHolder(ctx context.Context) error {
	holds := func(s *spender) bool { return s.last.Held >= heldEach }
	met, err := l.until(ctx, 100*time.Millisecond, func() bool { return slices.ContainsFunc(l.live, holds) })
	if !met || err != nil {
		return err
	}
	s := l.live[slices.IndexFunc(l.live, holds)]
	if err := l.kill(s); err != nil {
		return err
	}
	l.killed, l.lost = l.killed+1, l.lost+int(s.last.Held)
	return nil
}

// stopSpenders stops all clients while they hold more than the bound allows for, until
// that is void and the bucket full: who spends it then has had it twice.
func (l *leased) stopSpenders(ctx context.Context, where string) error {
	if err := l.surge(ctx, where, 1, func() bool { return float64(l.held()) >= handful*l.rate }); err != nil {
		return err
	}
	if err := l.each((*fleet.Node).Pause); err != nil {
		return err
	}
	held := l.held()
	l.stood = max(l.stood, held)
	l.a.say("%s: all clients stopped with %d tokens in hand", where, held)
	if err := pause(ctx, 2*leaseTime); err != nil {
		return err
	}
	if err := l.refilled(ctx, 1); err != nil {
		return err
	}
	if err := l.each((*fleet.Node).Resume); err != nil {
		return err
	}
	return l.goOn(ctx, time.Second)
}

// stopLeader stops the leader at a grant.
func (l *leased) stopLeader(ctx context.Context, where string) error {
	_, leader, err := l.a.leaderOf(ctx, l.flags.key)
	if err != nil {
		return err
	}
	if err := l.surge(ctx, where, someOf, l.granting()); err != nil {
		return err
	}
	if err := leader.Pause(); err != nil {
		return err
	}
	l.a.say("%s: leader %s stopped at a grant", where, leader.Name)
	err = l.goOn(ctx, standStill)
	if resumed := leader.Resume(); err == nil {
		err = resumed
	}
	if err != nil {
		return err
	}
	_, err = l.a.healthy(ctx, where)
	return err
}

// judge holds all answers to the bound and to the documented errors.
func (l *leased) judge() error {
	ops, r, bucket := l.ops(), l.a.report, l.flags.key.tenant
	s := check.Setup{Limits: map[string]check.Limit{bucket: l.limit}, Leased: map[string]time.Duration{bucket: leaseTime}, Strict: true}
	for _, f := range check.Findings(check.All(&s, ops)) {
		r.violate("all", f.Explain())
	}
	admitted, held, failed := 0, 0, 0
	for i := range ops {
		switch {
		case ops[i].Outcome == check.Admitted && ops[i].Leased:
			held++
			fallthrough
		case ops[i].Outcome == check.Admitted:
			admitted++
		case ops[i].Code != "":
			failed++
		}
	}
	took := time.Since(l.began)
	most := float64(l.limit.Burst) + l.rate*(took+leaseTime).Seconds()
	r.show("tokens", "%d admitted in %v, at most %.0f may be; %d of %d takes from leases, %d failed", admitted*spentAtOnce, took.Round(time.Millisecond), most, held, admitted, failed)
	r.show("clients killed", "%d with %d tokens in hand", l.killed, l.lost)
	r.show("stopped with", "%d tokens in hand", l.stood)
	r.show("in quiet times", "%.0f %% of the rate or more", 100*l.lowest)
	if held*4 < admitted {
		r.doubt("only %d of %d takes were decided from leases", held, admitted)
	}
	// Round strips the monotonic part: what is left is by the calendar, as spenders count.
	if step := took - time.Now().Round(0).Sub(l.began.Round(0)); step.Abs() > 5*time.Millisecond {
		r.doubt("the calendar was set by %v meanwhile", step)
	}
	return nil
}

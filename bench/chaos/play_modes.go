package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/client"
)

// The policies of the scenario, one for each failure mode. Each has a client library that
// asks for it all the time, and all four share what `local` admits.
var modePlans = [...]string{"local", "closed", "open", "patient"}

const (
	openFor     = 3 * time.Second        // as the policy `open` says; then it is closed
	modeAfter   = 50 * time.Millisecond  // what all but `patient` wait
	modeCallers = 4                      // of each client, for its own plan
	modePace    = 25 * time.Millisecond  // between two calls of one
	countedIn   = 11 * time.Second       // clients that start together know of each other, and nodes that start of them
	downAfter   = 300 * time.Millisecond // of a strike every call that begins meets it
	backIn      = time.Second            // of the cluster's return every client is back
	localLimit  = 100                    // of the policy `local`, in a window that outlasts an outage
)

// playModes kills a leader, then stops and kills all nodes, while clients ask on.
func playModes(ctx context.Context, a *arena, rounds int) error {
	m := &modal{a: a, tenant: a.fresh("closed").tenant}
	for i := range m.clients {
		c, err := client.New(a.fleet.GRPC(), client.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return err
		}
		defer c.Close()
		m.clients[i] = c
	}
	if err := pause(ctx, time.Second); err != nil { // they learn the policies
		return err
	}
	m.start(ctx)
	defer m.end()
	for i := range rounds {
		if err := m.round(ctx, fmt.Sprintf("round %d", i+1), i); err != nil {
			return err
		}
	}
	m.end()
	m.judgeCounts()
	return nil
}

// round is all of it once; every other time the nodes are killed before they are stopped.
func (m *modal) round(ctx context.Context, where string, i int) error {
	if err := m.loseLeader(ctx, where, "a leader killed", (*fleet.Node).Kill, (*fleet.Node).Start); err != nil {
		return err
	}
	if err := m.loseLeader(ctx, where, "a leader stopped", (*fleet.Node).Pause, (*fleet.Node).Resume); err != nil {
		return err
	}
	stopped := outage{where: where + ", all stopped", strike: (*fleet.Node).Pause, heal: (*fleet.Node).Resume, waits: true}
	killed := outage{where: where + ", all killed", strike: (*fleet.Node).KillNow, heal: restart}
	order := []outage{stopped, killed}
	if i%2 == 1 {
		order = []outage{killed, stopped}
	}
	for k := range order {
		if k == 0 || !order[k-1].waits { // nodes that have started again count anew
			if err := pause(ctx, countedIn); err != nil {
				return err
			}
		}
		if err := m.outage(ctx, order[k]); err != nil {
			return err
		}
	}
	m.a.report.Rounds++
	return nil
}

func restart(n *fleet.Node) error { return errors.Join(n.Kill(), n.Start()) }

// loseLeader strikes the leader of all that is asked for, and heals it. A killed one is
// followed within less than modeAfter, mostly; for a stopped one others wait longer.
func (m *modal) loseLeader(ctx context.Context, where, what string, strike, heal func(*fleet.Node) error) error {
	where += ", " + what
	k := key{m.tenant, "closed"}
	_, leader, err := m.a.leaderOf(ctx, k)
	if err != nil {
		return err
	}
	began := time.Since(m.a.began)
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	struck := time.Since(m.a.began)
	if err := strike(leader); err != nil {
		return err
	}
	rec := m.a.take(ctx, k, patience)
	if rec.err == nil {
		rec.err = pause(ctx, time.Second)
	}
	if err := errors.Join(rec.err, heal(leader)); err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if _, err := m.a.healthy(ctx, where); err != nil {
		return err
	}
	g := judgeGap(m.since(began), struck, rec.ret)
	m.a.report.violate(where, g.broken...)
	m.a.report.show(what, "%d of %d calls degraded in the gap of %v, %d of others", g.within, g.calls, (rec.ret - struck).Round(time.Millisecond), g.slow)
	return nil
}

// outage is something that happens to all nodes at once.
type outage struct {
	where        string
	strike, heal func(*fleet.Node) error
	waits        bool // connections are not refused: after has to pass
}

// outage strikes all nodes, looks at what clients answer, and heals them.
func (m *modal) outage(ctx context.Context, o outage) error {
	a, fresh := m.a, m.opened == 0 || time.Since(m.a.began)-m.lastOpen() > sameOutage
	if err := eachNode(a.fleet, o.strike); err != nil {
		return err
	}
	struck := time.Since(a.began)
	if err := pause(ctx, downAfter); err != nil {
		return err
	}
	from := time.Since(a.began)
	m.shares(o.where)
	lasts := openFor/2 + downAfter
	if fresh {
		m.opened, lasts = 0, openFor+time.Second
	}
	if o.waits { // one call of `patient` may begin just before the strike, and one must follow
		lasts = max(lasts, 2*patientFor+2*downAfter)
	}
	if err := pause(ctx, struck+lasts-time.Since(a.began)); err != nil {
		return err
	}
	to := time.Since(a.began)
	if err := eachNode(a.fleet, o.heal); err != nil {
		return err
	}
	back, err := m.returned(ctx, o.where)
	if err != nil {
		return err
	}
	if err := pause(ctx, 2*backIn); err != nil {
		return err
	}
	calls := m.since(struck)
	if m.opened == 0 {
		m.opened = firstOpen(calls)
	}
	w := window{from: from, to: to, opened: m.opened, waits: o.waits}
	broken, took := w.judge(calls)
	a.report.violate(o.where, broken...)
	late, waited := judgeReturn(calls, back)
	a.report.violate(o.where, late...)
	a.report.show(o.where, "%d calls, p95 %v over after; the last client back %v after the cluster", len(took), quantile(took, 0.95).Round(100*time.Microsecond), waited.Round(time.Millisecond))
	_, err = a.healthyWithin(ctx, o.where, replacedIn)
	return err
}

func eachNode(f *fleet.Fleet, do func(*fleet.Node) error) (err error) {
	for _, n := range f.Nodes {
		err = errors.Join(err, do(n))
	}
	return err
}

// shares has all clients take from one fresh key by their shares of `local`.
func (m *modal) shares(where string) {
	const each = 2 * localLimit / len(modePlans)
	tenant := m.a.fresh("local").tenant
	var mu sync.Mutex // guards admitted
	var admitted [len(modePlans)]int
	inParallel(each*len(modePlans), 40, func(i int) {
		c := m.ask(i%len(modePlans), "local", tenant)
		mu.Lock()
		defer mu.Unlock()
		if c.err == nil && c.d.Allowed {
			admitted[c.client]++
		}
	})
	total := 0
	for i, n := range admitted {
		if total += n; n != localLimit/len(modePlans) {
			m.a.report.violate(where, fmt.Sprintf("client %d admitted %d of its share of %d", i, n, localLimit/len(modePlans)))
		}
	}
	m.a.report.show("local", "%d of %d by %d clients", total, localLimit, len(admitted))
}

// returned is when a node decides again.
func (m *modal) returned(ctx context.Context, where string) (time.Duration, error) {
	for end := time.Now().Add(replacedIn); time.Now().Before(end); {
		for _, n := range m.a.fleet.Nodes {
			one, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			_, err := direct(one, n, key{m.tenant, "closed"}, 0)
			cancel()
			if err == nil {
				return time.Since(m.a.began), nil
			}
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return 0, fmt.Errorf("%s: no node decides within %v", where, replacedIn)
}

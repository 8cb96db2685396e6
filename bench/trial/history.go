package trial

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/report"
	"github.com/ringlimit/ringlimit/client"
)

// history is what callers did and saw. Times are since it began.
type history struct {
	run   string // begins all tenants' names
	began time.Time
	ids   atomic.Uint64

	mu       sync.Mutex // guards what follows, and the faults and breaches of the scene
	ops      []check.Op
	requests []report.Request
}

func newHistory(run string) *history { return &history{run: run, began: time.Now()} }

func (h *history) now() time.Duration { return time.Since(h.began) }

// fresh returns a number that names something for the first time.
func (h *history) fresh() uint64 { return h.ids.Add(1) }

// attempt is how long a caller that does not care for the outcome waits.
const attempt = 200 * time.Millisecond

// caller is a goroutine that asks.
type caller struct {
	*history
	number int
	client *client.Client
	plan   string
	tenant string
	names  check.Names // of the buckets that it takes from
	probe  bool
}

// ask makes one request with a time limit, and notes it. o says Kind, and ID, Body
// and Cost where they are of interest.
func (c *caller) ask(ctx context.Context, o check.Op, r client.Request, limit time.Duration) (client.Decision, error) {
	r.Plan, r.Tenant, r.Witness = c.plan, c.tenant, true
	o.Client, o.Request = c.number, c.fresh()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	o.Call = c.now()
	d, err := c.client.Decide(ctx, r)
	o.Return = c.now()
	var ops []check.Op
	if err != nil {
		ops = check.Answered(o, nil, err, c.names)
	} else {
		ops = check.Answered(o, &d, nil, c.names)
	}
	c.note(ops, report.Request{
		Call: o.Call, Return: o.Return, Answered: err == nil, Group: d.Group, Term: d.Term, Probe: c.probe, Plan: c.plan, Caller: c.number,
	})
	return d, err
}

func (h *history) note(ops []check.Op, r report.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, ops...)
	h.requests = append(h.requests, r)
}

// unserved says which groups did not answer probes throughout a time: each probe
// that was sent in it must have been answered within a second, the machine's own
// stalls aside.
func (h *history) unserved(from, to time.Duration, stalls []report.Span) (broken []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	sent, late := map[string]int{}, map[string]int{}
	for _, r := range h.requests {
		if !r.Probe || r.Call < from || r.Call > to-time.Second || stalled(r, stalls) {
			continue
		}
		if sent[r.Plan]++; !r.Answered || r.Return-r.Call > time.Second {
			late[r.Plan]++
		}
	}
	for plan, n := range late {
		broken = append(broken, fmt.Sprintf("%d of %d requests sent from %v to %v (%s) had no answer within a second", n, sent[plan], from, to, plan))
	}
	if sent["probe"] == 0 {
		broken = append(broken, "no request was sent while the fault was on")
	}
	slices.Sort(broken)
	return broken
}

// stalled says whether a request was under way when the machine stood still, or soon
// after.
func stalled(r report.Request, stalls []report.Span) bool {
	return slices.ContainsFunc(stalls, func(s report.Span) bool {
		return r.Call < s.To+2*time.Second && r.Return > s.From
	})
}

package main

import (
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// What failure modes promise, as judged from the calls of clients.

const (
	sameOutage  = 10 * time.Second       // of quiet, before what comes is another outage
	patientFor  = 2 * time.Second        // the client's own deadline, which `patient` waits for
	lateBy      = 25 * time.Millisecond  // calls of a busy machine, but for lateShare of them
	lateShare   = 0.05                   // …
	slowShare   = 0.01                   // of calls a busy machine may keep for modeAfter
	unsureFor   = 150 * time.Millisecond // around the end of `open`, and of a gap
	withoutFail = "a call failed"
)

// gap is what became of calls while a leader was killed.
type gap struct {
	calls, within, slow int
	broken              []string
}

// judgeGap: nobody who waits for the deadline is decided without the cluster; others only
// after modeAfter, and in the gap between the kill and the first answer of the next leader.
func judgeGap(calls []modeCall, killed, served time.Duration) (g gap) {
	for _, c := range calls {
		g.calls++
		switch {
		case c.err != nil:
			g.broken = append(g.broken, fmt.Sprintf("%s: %s: %v", c.plan, withoutFail, c.err))
		case !c.d.Degraded:
		case c.plan == "patient":
			g.broken = append(g.broken, fmt.Sprintf("patient: degraded after %v", c.ret-c.call))
		case c.ret-c.call < modeAfter:
			g.broken = append(g.broken, fmt.Sprintf("%s: degraded after %v, before %v have passed", c.plan, c.ret-c.call, modeAfter))
		case c.ret >= killed && c.call <= served+unsureFor:
			g.within++
		default:
			g.slow++
		}
	}
	if float64(g.slow) > slowShare*float64(g.calls) {
		g.broken = append(g.broken, fmt.Sprintf("%d of %d calls degraded outside of the gap of %v", g.slow, g.calls, served-killed))
	}
	return g
}

// window is the time in which surely no node answers.
type window struct {
	from, to time.Duration
	opened   time.Duration // when `open` began to count
	waits    bool          // no node refuses connections
}

// judge holds every call of an outage to its mode. over is by how much calls took longer
// than they had to.
func (w *window) judge(calls []modeCall) (broken []string, over []time.Duration) {
	counts := map[string]int{}
	late := 0
	for i := range calls {
		c := &calls[i]
		if c.call < w.from || c.ret > w.to {
			continue
		}
		counts[c.plan]++
		if bad := w.wrong(c); bad != "" {
			broken = append(broken, fmt.Sprintf("%s: %s after %v: %+v, %v", c.plan, bad, c.ret-c.call, c.d, c.err))
		}
		least := w.least(c.plan)
		over = append(over, c.ret-c.call-least)
		if c.ret-c.call > least+lateBy {
			late++
		}
	}
	if float64(late) > lateShare*float64(len(over)) {
		broken = append(broken, fmt.Sprintf("%d of %d calls took %v longer than they had to", late, len(over), lateBy))
	}
	for _, plan := range modePlans {
		if counts[plan] == 0 {
			broken = append(broken, plan+": no call was made")
		}
	}
	return broken, over
}

// least is how long a call must wait for an answer.
func (w *window) least(plan string) time.Duration {
	switch {
	case !w.waits:
		return 0
	case plan == "patient":
		return patientFor
	}
	return modeAfter
}

// wrong is what an answer is that is not what its mode says; empty: it is.
func (w *window) wrong(c *modeCall) string {
	if c.err != nil {
		return withoutFail
	}
	mode, allowed := client.ModeClosed, false
	switch c.plan {
	case "local":
		mode, allowed = client.ModeLocal, c.d.Allowed // by its share, which is counted elsewhere
	case "open":
		sofar := c.ret - w.opened
		if (sofar - openFor).Abs() < unsureFor {
			return ""
		}
		if sofar < openFor {
			mode, allowed = client.ModeOpen, true
		}
	}
	switch {
	case !c.d.Degraded:
		return "not said to be degraded"
	case c.d.FailureMode != mode:
		return fmt.Sprintf("decided by mode %s, want %s", c.d.FailureMode, mode)
	case c.d.Allowed != allowed:
		return fmt.Sprintf("allowed %v, want %v", c.d.Allowed, allowed)
	case !c.d.Allowed && mode == client.ModeClosed && c.d.Reason != "limiter_unavailable":
		return "denied for another reason"
	case c.ret-c.call < w.least(c.plan):
		return fmt.Sprintf("before %v", w.least(c.plan))
	}
	return ""
}

// firstOpen is the first answer that `open` gave without the cluster, 0 if none.
func firstOpen(calls []modeCall) (first time.Duration) {
	for _, c := range calls {
		if c.plan == "open" && c.d.Degraded && (first == 0 || c.ret < first) {
			first = c.ret
		}
	}
	return first
}

// judgeReturn: of each client a call is decided by the cluster within backIn of its return,
// and then all are. waited is how long the last client was not.
func judgeReturn(calls []modeCall, back time.Duration) (broken []string, waited time.Duration) {
	var first [len(modePlans)]time.Duration
	after, slow := 0, 0
	for _, c := range calls {
		if c.err != nil {
			broken = append(broken, fmt.Sprintf("%s: %s: %v", c.plan, withoutFail, c.err))
			continue
		}
		if !c.d.Degraded && c.ret >= back && (first[c.client] == 0 || c.ret < first[c.client]) {
			first[c.client] = c.ret
		}
		if c.call >= back+backIn {
			if after++; c.d.Degraded {
				slow++
			}
		}
	}
	for i, at := range first {
		if waited = max(waited, at-back); at == 0 || at > back+backIn {
			broken = append(broken, fmt.Sprintf("client %d (%s) was not back within %v of the cluster", i, modePlans[i], backIn))
		}
	}
	if after == 0 || float64(slow) > slowShare*float64(after) {
		broken = append(broken, fmt.Sprintf("%d of %d calls were degraded after %v", slow, after, backIn))
	}
	return broken, waited
}

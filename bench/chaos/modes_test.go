package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

const milli = time.Millisecond

// moded is a call of a plan that began at a time and took so long.
func moded(plan string, call, took time.Duration, mode client.FailureMode, allowed bool) modeCall {
	c := modeCall{plan: plan, call: call, ret: call + took}
	c.d.FailureMode, c.d.Degraded, c.d.Allowed = mode, mode != "", allowed
	if !allowed && mode == client.ModeClosed {
		c.d.Reason = "limiter_unavailable"
	}
	for i, p := range modePlans {
		if p == plan {
			c.client = i
		}
	}
	return c
}

// found says whether exactly one promise is said to be broken, in these words; none if
// they are empty.
func found(t *testing.T, name string, broken []string, words string) {
	t.Helper()
	if words == "" && len(broken) > 0 || words != "" && (len(broken) != 1 || !strings.Contains(broken[0], words)) {
		t.Errorf("%s: %q, want %q", name, broken, words)
	}
}

// TestOutageIsJudgedByMode: at once where connections are refused, after its time where
// nobody answers, and as the mode says.
func TestOutageIsJudgedByMode(t *testing.T) {
	rights := func(wait, patient time.Duration) (calls []modeCall) {
		for at := time.Second; at < 8*time.Second; at += 500 * milli {
			open, is := client.ModeOpen, true
			if at+wait > 900*milli+openFor {
				open, is = client.ModeClosed, false
			}
			calls = append(calls, moded("local", at, wait, client.ModeLocal, at < 3*time.Second), moded("closed", at, wait, client.ModeClosed, false),
				moded("open", at, wait, open, is), moded("patient", at, patient, client.ModeClosed, false))
		}
		return calls
	}
	for name, x := range map[string]struct {
		waits bool
		extra modeCall
		words string
	}{
		"right":           {false, modeCall{plan: "local"}, ""},
		"right, silent":   {true, modeCall{plan: "local"}, ""},
		"an error":        {false, modeCall{plan: "closed", call: time.Second, ret: time.Second, err: errors.New("x")}, withoutFail},
		"not degraded":    {false, moded("closed", time.Second, 0, "", true), "not said to be degraded"},
		"another mode":    {false, moded("local", time.Second, 0, client.ModeOpen, true), "mode open"},
		"closed allowed":  {false, moded("patient", time.Second, 0, client.ModeClosed, true), "allowed true"},
		"open for ever":   {false, moded("open", 6*time.Second, 0, client.ModeOpen, true), "mode open"},
		"open not at all": {false, moded("open", time.Second, 0, client.ModeClosed, false), "mode closed"},
		"too early":       {true, moded("local", time.Second, 40*milli, client.ModeLocal, true), "before 50ms"},
		"impatient":       {true, moded("patient", time.Second, 60*milli, client.ModeClosed, false), "before 2s"},
	} {
		wait, patient := time.Duration(0), time.Duration(0)
		if x.waits {
			wait, patient = modeAfter, patientFor
		}
		w := window{from: 500 * milli, to: 20 * time.Second, opened: 900 * milli, waits: x.waits}
		broken, _ := w.judge(append(rights(wait, patient), x.extra))
		found(t, name, broken, x.words)
	}
	w := window{from: 500 * milli, to: 20 * time.Second, opened: 900 * milli}
	broken, _ := w.judge(rights(modeAfter, 0))
	found(t, "not at once", broken, "longer than they had to")
	broken, _ = w.judge(nil)
	if len(broken) != len(modePlans) {
		t.Errorf("no calls: %q", broken)
	}
}

func TestGapIsJudged(t *testing.T) {
	var calls []modeCall
	for range 200 {
		calls = append(calls, moded("closed", time.Second, milli, "", true))
	}
	for name, x := range map[string]struct {
		call  modeCall
		times int
		words string
	}{
		"in the gap":        {moded("closed", 2*time.Second, modeAfter, client.ModeClosed, false), 9, ""},
		"one slow call":     {moded("closed", 8*time.Second, modeAfter, client.ModeClosed, false), 1, ""},
		"before the strike": {moded("closed", time.Second, modeAfter, client.ModeClosed, false), 9, "outside of the gap"},
		"at once":           {moded("open", 2*time.Second, 0, client.ModeOpen, true), 1, "before 50ms"},
		"who waits":         {moded("patient", 2*time.Second, patientFor, client.ModeClosed, false), 1, "patient: degraded"},
		"an error":          {modeCall{plan: "patient", call: 2 * time.Second, err: errors.New("x")}, 1, withoutFail},
	} {
		all := calls
		for range x.times {
			all = append(all, x.call)
		}
		found(t, name, judgeGap(all, 1990*milli, 2400*milli).broken, x.words)
	}
}

func TestReturnIsJudged(t *testing.T) {
	at := func(first time.Duration) (calls []modeCall) {
		for _, plan := range modePlans {
			calls = append(calls, moded(plan, time.Second, milli, client.ModeClosed, false), moded(plan, first, milli, "", true), moded(plan, 5*time.Second, milli, "", true))
		}
		return calls
	}
	broken, waited := judgeReturn(at(3500*milli), 3*time.Second)
	if found(t, "in time", broken, ""); waited != 501*milli {
		t.Errorf("waited %v", waited)
	}
	broken, _ = judgeReturn(at(4500*milli), 3*time.Second)
	if len(broken) != len(modePlans) {
		t.Errorf("late: %q", broken)
	}
	broken, _ = judgeReturn(append(at(3500*milli), moded("open", 6*time.Second, 50*milli, client.ModeClosed, false)), 3*time.Second)
	found(t, "degraded later", broken, "1 of 5 calls")
}

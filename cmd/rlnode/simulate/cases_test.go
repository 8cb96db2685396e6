package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/cmd/rlnode/simulate"
)

// step is times requests of a cost at a time, and what each is answered, as inWords says it.
type step struct {
	at    string
	times int
	cost  int
	want  string
}

// TestWorkedByHand are cases whose answers a person can work out.
func TestWorkedByHand(t *testing.T) {
	one := func(policy string) string { return "policies: [{id: p, scope: tenant, " + policy + "}]" }
	for name, c := range map[string]struct {
		file  string
		steps []step
	}{
		"spend 40, ask 37 10 ms later": {one("rate_per_second: 20, burst: 40"), []step{
			{"0", 1, 40, "allowed, 0 left"}, {"0.01", 1, 37, "denied by p, again in 1.84s"}, {"1.849999999", 1, 37, "denied by p, again in 1ns"}, {"1.85", 1, 37, "allowed, 0 left"},
		}},
		"one per second, asked at 200 ms": {one("amount: 1, window: 1000ms"), []step{
			{"0", 1, 1, "allowed, 0 left"}, {"0.2", 1, 1, "denied by p, again in 800ms"},
		}},
		"a leaky bucket lets one through every 3 s": {one("algorithm: leaky_bucket, amount: 10, window: 30s"), []step{
			{"0", 1, 10, "allowed, 0 left"},
			{"1", 1, 1, "denied by p, again in 2s"},
			{"2", 1, 1, "denied by p, again in 1s"},
			{"3", 1, 1, "allowed, 0 left, hold it for 27s"},
			{"4", 2, 1, "denied by p, again in 2s"},
			{"6", 1, 1, "allowed"},
			{"8", 1, 1, "denied by p, again in 1s"},
			{"9", 1, 1, "allowed"},
		}},
		"an idle bucket does not save above its burst": {one("amount: 1, window: 1s, burst: 10"), []step{
			{"0", 1, 1, "allowed, 9 left"}, {"8.9", 10, 1, "allowed"}, {"8.9", 5, 1, "denied by p"},
		}},
		"2,000 a second with a burst of 1": {one("amount: 2000, window: 1s, burst: 1"), []step{
			{"0", 1, 1, "allowed"}, {"0", 1, 1, "denied by p, again in 500µs"}, {"0.0005", 1, 1, "allowed"}, {"0.001", 1, 1, "allowed"},
		}},
		"a window is half open": {one("algorithm: sliding_log, amount: 2, window: 1s"), []step{
			{"0", 2, 1, "allowed"}, {"0.999999999", 1, 1, "denied by p, again in 1ns"}, {"1.0", 2, 1, "allowed"},
		}},
		"an amount of 0 denies for ever": {one("amount: 0, window: 1s"), []step{
			{"0", 1, 0, "denied by p, never"}, {"100", 1, 1, "denied by p, never"},
		}},
		"the longest wait is the headline": {`policies:
  - {id: hour, scope: tenant, algorithm: fixed_window, amount: 1, window: 1h}
  - {id: minute, scope: tenant, algorithm: fixed_window, amount: 1, window: 1m}`, []step{
			{"2380", 1, 1, "allowed"}, {"2380", 1, 1, "denied by hour, again in 20m20s"}, {"2400", 1, 1, "denied by hour, again in 20m0s"},
		}},
		"an exhausted shadow policy": {`policies:
  - {id: enforced, scope: tenant, algorithm: fixed_window, amount: 200, window: 1h}
  - {id: watched, scope: tenant, algorithm: fixed_window, amount: 1, window: 1h, mode: shadow}
  - {id: off, scope: tenant, algorithm: fixed_window, amount: 1, window: 1h, mode: disabled}`, []step{
			{"0", 99, 1, "allowed"}, {"0", 1, 1, "allowed, 100 left"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var trace strings.Builder
			var want []string
			for _, s := range c.steps {
				for range s.times {
					fmt.Fprintf(&trace, `{"t":"%s","cost":%d,"request":{"tenant":"acme"}}`+"\n", s.at, s.cost)
					want = append(want, s.want)
				}
			}
			play(t, parse(t, c.file), trace.String(), func(e *simulate.Event, o *simulate.Outcome) {
				if got := inWords(o); got != want[0] && !strings.HasPrefix(got, want[0]+",") {
					t.Errorf("at %s cost %d: %s, want %s", e.T, e.Request.Cost, got, want[0])
				}
				want = want[1:]
			})
		})
	}
}

// TestCostAboveWhatIsLeft: 11 of 10 is denied and takes nothing, in every algorithm.
func TestCostAboveWhatIsLeft(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "concurrency"} {
		trace := `{"t":"0","cost":11,"request":{"tenant":"acme"}}` + "\n" + strings.Repeat(`{"t":"0","request":{"tenant":"acme"}}`+"\n", 11)
		n := 0
		play(t, parse(t, "policies: [{id: p, scope: tenant, amount: 10, window: 60s, algorithm: "+algorithm+"}]"), trace, func(_ *simulate.Event, o *simulate.Outcome) {
			l := o.Limits[0]
			switch {
			case n == 0 && (o.Allowed || o.Reason != "cost_exceeds_capacity" || l.RetryAfter != -1 || l.Remaining != 10):
				t.Errorf("%s: cost 11: %+v", algorithm, o)
			case n > 0 && n <= 10 && !o.Allowed, n == 11 && o.Allowed:
				t.Errorf("%s: request %d: %+v", algorithm, n, o)
			}
			n++
		})
	}
}

// TestQueryStringsShareABucket: 1,000 requests that differ in nothing else.
func TestQueryStringsShareABucket(t *testing.T) {
	var trace strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&trace, `{"t":"0","request":{"tenant":"acme","route":"GET:/v1/items?page=%d#%d"}}`+"\n", i, i)
	}
	admitted := 0
	play(t, parse(t, "policies: [{id: p, scope: [tenant, route], algorithm: fixed_window, amount: 10, window: 1m}]"), trace.String(), func(_ *simulate.Event, o *simulate.Outcome) {
		if o.Allowed {
			admitted++
		}
	})
	if admitted != 10 {
		t.Errorf("%d admitted, want 10", admitted)
	}
}

// TestTheTableForgetsIdleKeys: a trace of many one-shot keys is not kept.
func TestTheTableForgetsIdleKeys(t *testing.T) {
	s, err := simulate.New(parse(t, "policies: [{id: p, scope: tenant, amount: 10, window: 1s}]"))
	if err != nil {
		t.Fatal(err)
	}
	var event simulate.Event
	event.Request.Cost = 1
	for i := range 100_000 {
		event.Request.Tenant = fmt.Sprint(i)
		if _, err := s.Decide(int64(i)*int64(time.Millisecond), &event.Request); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Buckets(); n > 20_000 {
		t.Errorf("%d buckets are kept of 100,000, of which 1,000 are not fresh", n)
	}
}

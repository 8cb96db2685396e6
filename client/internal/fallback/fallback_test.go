package fallback

import (
	"fmt"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/policy"
)

var (
	secret = [16]byte{1}
	start  = time.Unix(1_000_000, 0)
)

func rules(t *testing.T, file string) *Rules {
	t.Helper()
	set, err := policy.Parse("test.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Compile(set, secret)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tenant(name string, cost uint64) *policy.Request {
	return &policy.Request{Tenant: name, Cost: cost}
}

// TestPartsMakeTheWhole: whatever the numbers, the shares of all clients add up to
// the limit, and none can spend without a burst.
func TestPartsMakeTheWhole(t *testing.T) {
	for _, clients := range []int{1, 2, 3, 4, 7, 100} {
		for _, l := range [][2]uint64{{0, 0}, {1, 1}, {3, 2}, {2, 3}, {10, 10}, {100, 100}, {20, 40}, {1e9, 7}} {
			for salt := range uint64(5) {
				var amount, burst uint64
				for rank := range clients {
					a, b := Share{clients, rank}.of(l[0], l[1], salt)
					amount, burst = amount+a, burst+b
					if (a == 0) != (b == 0) {
						t.Errorf("%d clients, limit %v: amount %d with burst %d", clients, l, a, b)
					}
				}
				if amount != l[0] || burst != l[1] {
					t.Errorf("%d clients, limit %v: %d and %d in all", clients, l, amount, burst)
				}
			}
		}
	}
	if a, b := (Share{}).of(5, 6, 7); a != 5 || b != 6 {
		t.Errorf("the zero share is %d, %d", a, b)
	}
}

// TestLocalSharesMakeTheLimit: four clients that ask far too much admit together what
// the limit says, in each window and over a long time.
func TestLocalSharesMakeTheLimit(t *testing.T) {
	for algorithm, want := range map[string]int{ // in three windows of 100
		"fixed_window": 300, "sliding_window": 300, "sliding_log": 300, "concurrency": 300,
		"token_bucket": 400, "leaky_bucket": 400, // burst + rate × time
	} {
		r := rules(t, fmt.Sprintf("policies:\n  - {id: p, scope: [tenant], algorithm: %s, amount: 100, window: 10s}", algorithm))
		total := 0
		for rank := range 4 {
			d, first := NewDecider(), 0
			for at := time.Duration(0); at < 30*time.Second; at += 20 * time.Millisecond {
				now := start.Add(at)
				got := d.Decide(r, tenant("acme", 1), Share{4, rank}, 0, now, now)
				if !got.Allowed {
					if got.Limits[0].Reason != RateLimited || got.Limits[0].RetryAfter <= 0 {
						t.Fatalf("%s: %+v", algorithm, got.Limits[0])
					}
					continue
				}
				total++
				if at < time.Second {
					first++
				}
			}
			if first < 25 || first > 28 {
				t.Errorf("%s: client %d admits %d at first", algorithm, rank, first)
			}
		}
		if total < want*95/100 || total > want {
			t.Errorf("%s: %d admitted in all, want %d", algorithm, total, want)
		}
	}
}

// TestRetryAfterIsKept: who comes back exactly then, alone, is admitted, and a moment
// earlier is not.
func TestRetryAfterIsKept(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log"} {
		r := rules(t, fmt.Sprintf("policies:\n  - {id: p, scope: [tenant], algorithm: %s, amount: 7, window: 3s}", algorithm))
		d, now := NewDecider(), start
		for range 20 {
			for {
				got := d.Decide(r, tenant("acme", 1), Share{}, 0, now, now)
				if got.Allowed {
					continue
				}
				early := now.Add(got.Limits[0].RetryAfter - time.Millisecond)
				if d.Decide(r, tenant("acme", 0), Share{}, 0, early, early).Allowed {
					t.Fatalf("%s: admitted before its time", algorithm)
				}
				now = now.Add(got.Limits[0].RetryAfter)
				break
			}
			if !d.Decide(r, tenant("acme", 1), Share{}, 0, now, now).Allowed {
				t.Fatalf("%s: denied at its time", algorithm)
			}
		}
	}
}

// TestASlowShareAdmitsNoMoreThanItHas: where a token takes hours, what rounding leaves is
// the work of many requests, and each that is admitted takes.
func TestASlowShareAdmitsNoMoreThanItHas(t *testing.T) {
	r := rules(t, "policies:\n  - {id: p, scope: [tenant], algorithm: token_bucket, amount: 1, window: 720h}")
	d := NewDecider()
	ask := func(at time.Duration) bool {
		now := start.Add(at)
		return d.Decide(r, tenant("acme", 1), Share{}, 0, now, now).Allowed
	}
	if !ask(0) {
		t.Fatal("a full bucket denies")
	}
	admitted := 0
	for at := 720*time.Hour - 5*time.Second; at < 720*time.Hour+time.Second; at += 10 * time.Millisecond {
		if ask(at) {
			admitted++
		}
	}
	if admitted != 1 {
		t.Errorf("%d admitted around the moment of one token", admitted)
	}
}

func TestModesOverTime(t *testing.T) {
	r := rules(t, `
policies:
  - {id: local, match: {plan: local}, scope: [tenant], amount: 1, window: 1h}
  - {id: closed, match: {plan: closed}, scope: [tenant], amount: 1, window: 1h, on_unavailable: {mode: closed}}
  - {id: open-local, match: {plan: a}, scope: [tenant], amount: 1, window: 1h, on_unavailable: {mode: open, for: 1m}}
  - {id: open-closed, match: {plan: b}, scope: [tenant], amount: 1, window: 1h, on_unavailable: {mode: open, for: 1m, then: closed}}
`)
	d := NewDecider()
	for _, c := range []struct {
		plan    string
		lasted  time.Duration
		allowed bool
		mode    policy.FailureMode
		reason  string
	}{
		{"local", 0, true, policy.Local, ""},
		{"local", time.Hour, false, policy.Local, RateLimited},
		{"closed", 0, false, policy.Closed, LimiterUnavailable},
		{"a", 0, true, policy.Open, ""},
		{"a", time.Minute - 1, true, policy.Open, ""},
		{"a", time.Minute, true, policy.Local, ""},
		{"a", time.Minute, false, policy.Local, RateLimited},
		{"b", time.Minute - 1, true, policy.Open, ""},
		{"b", time.Minute, false, policy.Closed, LimiterUnavailable},
	} {
		q := &policy.Request{Tenant: "acme", Plan: c.plan, Cost: 1}
		got := d.Decide(r, q, Share{}, c.lasted, start, start)
		if l := got.Limits[got.Head]; got.Allowed != c.allowed || l.Mode != c.mode || l.Reason != c.reason || l.Allowed != c.allowed {
			t.Errorf("%s after %v: %+v", c.plan, c.lasted, got)
		}
	}
}

// TestDeniedTakesNothing: over several limits all must pass, and the shares of those
// that would have admitted stay whole.
func TestDeniedTakesNothing(t *testing.T) {
	r := rules(t, `
policies:
  - {id: a-wide, scope: [tenant], amount: 10, window: 1h}
  - {id: b-narrow, scope: [tenant], amount: 2, window: 1h}
  - {id: c-closed, match: {plan: closed}, scope: [tenant], amount: 9, window: 1h, on_unavailable: {mode: closed}}
  - {id: d-shadow, scope: [tenant], amount: 1, window: 1h, mode: shadow}
`)
	d := NewDecider()
	ask := func(plan string) Decision {
		return d.Decide(r, &policy.Request{Tenant: "acme", Plan: plan, Cost: 1}, Share{}, 0, start, start)
	}
	for i := range 5 {
		if got := ask("closed"); got.Allowed || got.Limits[got.Head].Policy.ID != "c-closed" || got.Limits[0].Remaining != uint64(10-min(i, 2)) {
			t.Fatalf("with a closed one: %+v", got)
		}
		got := ask("")
		if got.Allowed != (i < 2) || got.Limits[got.Head].Policy.ID != "b-narrow" || !got.Limits[2].Shadow {
			t.Fatalf("take %d: %+v", i, got)
		}
		if want := uint64(10 - min(i+1, 2)); got.Limits[0].Remaining != want {
			t.Errorf("take %d: %d left of the wide one, want %d", i, got.Limits[0].Remaining, want)
		}
	}
}

func TestCostsOfAllKinds(t *testing.T) {
	r := rules(t, `
policies:
  - {id: p, scope: [tenant], amount: 40, window: 1h}
  - {id: none, match: {plan: none}, scope: [tenant], amount: 0, window: 1h}
`)
	d := NewDecider()
	for _, c := range []struct {
		cost    uint64
		allowed bool
		reason  string
		never   bool
	}{
		{0, true, "", false}, {41, false, CostExceeds, true}, {11, false, RateLimited, false}, {10, true, "", false}, {0, false, RateLimited, false},
	} {
		got := d.Decide(r, tenant("acme", c.cost), Share{4, 0}, 0, start, start)
		if l := got.Limits[0]; got.Allowed != c.allowed || l.Reason != c.reason || (l.RetryAfter == -1) != c.never || l.Capacity != 10 {
			t.Errorf("cost %d: %+v", c.cost, l)
		}
	}
	got := d.Decide(r, &policy.Request{Tenant: "acme", Plan: "none", Cost: 1}, Share{}, 0, start, start)
	if l := got.Limits[got.Head]; got.Allowed || l.Reason != NothingAllowed || l.RetryAfter != -1 {
		t.Errorf("amount 0: %+v", l)
	}
}

func TestWhoIsNotLimited(t *testing.T) {
	for action, allowed := range map[string]bool{"allow": true, "deny": false} {
		r := rules(t, "no_match: "+action+`
policies:
  - {id: p, match: {plan: x}, scope: [tenant], amount: 1, window: 1s}
  - {id: try, scope: [tenant], amount: 1, window: 1s, mode: shadow}
`)
		got := NewDecider().Decide(r, tenant("acme", 1), Share{}, 0, start, start)
		if got.Allowed != allowed || got.Head != -1 || len(got.Limits) != 1 {
			t.Errorf("no_match %s: %+v", action, got)
		}
	}
}

func TestAfterIsTheLongestThatApplies(t *testing.T) {
	r := rules(t, `
policies:
  - {id: default, match: {plan: a*}, scope: [tenant], amount: 1, window: 1s}
  - {id: slow, match: {plan: ab*}, scope: [tenant], amount: 1, window: 1s, on_unavailable: {mode: closed, after: 300ms}}
  - {id: exact, match: {plan: abc*}, scope: [tenant], amount: 1, window: 1s, on_unavailable: {mode: local, after: deadline}}
  - {id: quick, match: {plan: q}, scope: [tenant], amount: 1, window: 1s, on_unavailable: {mode: local, after: 5ms}}
  - {id: try, scope: [tenant], amount: 1, window: 1s, mode: shadow, on_unavailable: {mode: local, after: 1h}}
`)
	if r.Soonest() != 5*time.Millisecond {
		t.Errorf("the soonest is %v", r.Soonest())
	}
	for plan, want := range map[string]time.Duration{
		"a": 50 * time.Millisecond, "ab": 300 * time.Millisecond, "abc": policy.AfterDeadline, "q": 5 * time.Millisecond, "other": 50 * time.Millisecond,
	} {
		if got := r.After(&policy.Request{Tenant: "acme", Plan: plan, Cost: 1}); got != want {
			t.Errorf("plan %s waits %v, want %v", plan, got, want)
		}
	}
}

// TestOverrideEndsByTheCalendar: nobody could tell the client that it has.
func TestOverrideEndsByTheCalendar(t *testing.T) {
	set, err := policy.Parse("test.yaml", []byte("policies:\n  - {id: p, scope: [tenant], amount: 10, window: 1h}"))
	if err != nil {
		t.Fatal(err)
	}
	amount := uint64(1000)
	set.Overrides = []*policy.Override{{Policy: "p", Key: policy.On("tenant", "acme"), Amount: &amount, Until: start.Add(time.Hour).UnixNano(), Version: 7}}
	set.Policies[0].Version = 3
	r, err := Compile(set, secret)
	if err != nil {
		t.Fatal(err)
	}
	d := NewDecider()
	for at, want := range map[time.Duration][2]uint64{0: {1000, 7}, time.Hour - 1: {1000, 7}, time.Hour: {10, 3}} {
		got := d.Decide(r, tenant("acme", 1), Share{}, 0, start.Add(at), start)
		if l := got.Limits[0]; l.Capacity != want[0] || l.Version != want[1] {
			t.Errorf("after %v: %d by version %d, want %v", at, l.Capacity, l.Version, want)
		}
	}
}

// TestKeysAreBounded: beyond the cap new keys share one bucket, so that they get less
// and never more; what is fresh again makes room.
func TestKeysAreBounded(t *testing.T) {
	r := rules(t, "policies:\n  - {id: p, scope: [tenant], amount: 5, window: 1s}")
	d := NewDecider()
	d.most = 100
	ask := func(name string, now time.Time) bool {
		return d.Decide(r, tenant(name, 1), Share{}, 0, now, now).Allowed
	}
	for i := range 100 {
		ask(fmt.Sprint("old", i), start)
	}
	admitted := 0
	for i := range 1000 {
		if ask(fmt.Sprint("new", i), start) {
			admitted++
		}
	}
	if admitted != 5 || len(d.locals) != 101 {
		t.Errorf("%d of 1,000 new keys admitted, %d buckets", admitted, len(d.locals))
	}
	if !ask("old7", start) {
		t.Error("a key that was there before is denied")
	}
	later := start.Add(time.Minute)
	for i := range 100 {
		if !ask(fmt.Sprint("later", i), later) {
			t.Errorf("key %d is denied when there is room again", i)
		}
	}
}

// TestShareFollowsTheCount: what is left goes over when the number of clients changes.
func TestShareFollowsTheCount(t *testing.T) {
	r := rules(t, "policies:\n  - {id: p, scope: [tenant], algorithm: fixed_window, amount: 100, window: 1h}")
	d := NewDecider()
	spend := func(s Share) (n int) {
		for d.Decide(r, tenant("acme", 1), s, 0, start, start).Allowed {
			n++
		}
		return n
	}
	if n := spend(Share{4, 0}); n != 25 {
		t.Errorf("%d of a quarter", n)
	}
	if n := spend(Share{2, 0}); n != 0 {
		t.Errorf("%d more in the same window", n)
	}
}

func TestOutageLasts(t *testing.T) {
	var o Outage
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	want := func(now int, lasted int) {
		t.Helper()
		if got := o.Lasted(time.Time{}, at(now)); got != time.Duration(lasted)*time.Second {
			t.Errorf("at %d s: %v, want %d s", now, got, lasted)
		}
	}
	want(0, 0)
	want(100, 100) // nobody asked meanwhile, and nothing was heard of the cluster
	o.Answered()
	want(105, 105) // it was back for a moment only
	o.Answered()
	want(116, 0)
	want(117, 1)
	if got := o.Lasted(at(100), at(118)); got != 2*time.Second {
		t.Errorf("an outage that is known already begins anew: %v", got)
	}
	var fresh Outage
	if got := fresh.Lasted(at(-60), at(0)); got != time.Minute {
		t.Errorf("out of reach for a minute: %v", got)
	}
}

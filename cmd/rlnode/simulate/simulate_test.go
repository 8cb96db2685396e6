package simulate_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/cmd/rlnode/simulate"
	"github.com/ringlimit/ringlimit/policy"
)

// parse reads a policy file given as text.
func parse(t testing.TB, text string) *policy.Set {
	t.Helper()
	set, err := policy.Parse("p.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// play decides a whole trace; each line of the result is one outcome.
func play(t testing.TB, set *policy.Set, trace string, each func(*simulate.Event, *simulate.Outcome)) string {
	t.Helper()
	s, err := simulate.New(set)
	if err != nil {
		t.Fatal(err)
	}
	in := simulate.NewTrace("t.ndjson", strings.NewReader(trace))
	var out []byte
	for {
		e, err := in.Next()
		if errors.Is(err, io.EOF) {
			return string(out)
		}
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Decide(e.Time, &e.Request)
		if err != nil {
			t.Fatal(err)
		}
		out = o.AppendJSON(out, e)
		if each != nil {
			each(e, o)
		}
	}
}

// comparison is the trace of the published comparison: 100 requests spread over
// [59,60), 100 over [60,61), 100 at 90 s.
func comparison() string {
	var b strings.Builder
	line := func(t string) {
		fmt.Fprintf(&b, `{"t":%q,"request":{"tenant":"acme","route":"GET:/v1/items"}}`+"\n", t)
	}
	for i := range 100 {
		line(fmt.Sprintf("59.%02d", i))
	}
	for i := range 100 {
		line(fmt.Sprintf("60.%02d", i))
	}
	for range 100 {
		line("90")
	}
	return b.String()
}

func TestPublishedComparison(t *testing.T) {
	trace := comparison()
	for algorithm, want := range map[string][2]int{
		"fixed_window":   {200, 0},
		"sliding_log":    {100, 0},
		"sliding_window": {102, 48},
		"token_bucket":   {103, 48},
	} {
		t.Run(algorithm, func(t *testing.T) {
			set := parse(t, "policies: [{id: p, scope: tenant, algorithm: "+algorithm+", amount: 100, window: 60s}]")
			var got [2]int
			play(t, set, trace, func(e *simulate.Event, o *simulate.Outcome) {
				if !o.Allowed {
					return
				}
				if e.T == "90" {
					got[1]++
				} else {
					got[0]++
				}
			})
			if got != want {
				t.Errorf("admitted %v, want %v", got, want)
			}
		})
	}
}

func TestOutputIsAsDocumented(t *testing.T) {
	set := parse(t, `
no_match: deny
policies:
  - {id: items, match: {route: "GET:*"}, scope: [tenant, api_key], algorithm: token_bucket, amount: 100, window: 60s}
  - {id: hard, match: {route: "GET:/x"}, scope: tenant, algorithm: fixed_window, amount: 0, window: 60s}
  - {id: watched, match: {route: "PUT:*"}, scope: tenant, algorithm: token_bucket, amount: 1, window: 1s, mode: shadow}
`)
	got := play(t, set, `
{"t":"59.01","cost":1,"request":{"tenant":"acme","route":"GET:/v1/items?page=2","principal_type":"api_key","principal_id":"k1"}}
{"t":"59.010000001","cost":101,"request":{"tenant":"acme","route":"GET:/v1/items","principals":[{"type":"api_key","id":"k1"}]}}
{"t":"59.010000001","cost":100,"request":{"tenant":"acme","route":"GET:/v1/items","principals":[{"type":"api_key","id":"k1"}]}}
{"t":"60","request":{"tenant":"acme","route":"GET:/x"}}
{"t":"60","request":{"tenant":"acme","route":"PUT:/x"}}
{"t":"60","request":{}}
`, nil)
	want := `{"t":"59.01","allowed":true,"policy_id":"items","remaining":99,"retry_after_ns":0,"reset_after_ns":600000000,"delay_ns":0,"reason":""}
{"t":"59.010000001","allowed":false,"policy_id":"items","remaining":99,"retry_after_ns":-1,"reset_after_ns":599999999,"delay_ns":0,"reason":"cost_exceeds_capacity"}
{"t":"59.010000001","allowed":false,"policy_id":"items","remaining":99,"retry_after_ns":599999999,"reset_after_ns":599999999,"delay_ns":0,"reason":"rate_limited"}
{"t":"60","allowed":false,"policy_id":"hard","remaining":0,"retry_after_ns":-1,"reset_after_ns":0,"delay_ns":0,"reason":"nothing_allowed"}
{"t":"60","allowed":false,"policy_id":"","remaining":0,"retry_after_ns":-1,"reset_after_ns":0,"delay_ns":0,"reason":"no_policy"}
{"t":"60","allowed":false,"policy_id":"","remaining":0,"retry_after_ns":-1,"reset_after_ns":0,"delay_ns":0,"reason":"no_policy"}
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestSeveralLimitsOfOneRequest(t *testing.T) {
	set := parse(t, `
policies:
  - {id: org, scope: tenant, algorithm: fixed_window, amount: 10, window: 60s}
  - {id: user, scope: [tenant, user], algorithm: fixed_window, amount: 5, window: 60s}
`)
	var b strings.Builder
	for _, user := range []string{"A", "B"} {
		for range 8 {
			fmt.Fprintf(&b, `{"t":"0","request":{"tenant":"acme","principals":[{"type":"user","id":%q}]}}`+"\n", user)
		}
	}
	admitted := map[string]int{}
	var summary simulate.Summary
	play(t, set, b.String(), func(e *simulate.Event, o *simulate.Outcome) {
		summary.Add(o)
		if o.Allowed {
			admitted[e.Request.Principals[0].ID]++
		} else if id := o.Limits[o.Head].PolicyID; id != "user" && e.Request.Principals[0].ID == "A" {
			t.Errorf("%s denied", id)
		}
	})
	if admitted["A"] != 5 || admitted["B"] != 5 {
		t.Errorf("admitted %v", admitted)
	}
	var table strings.Builder
	if _, err := summary.WriteTo(&table); err != nil {
		t.Fatal(err)
	}
	if want := `
POLICY  REQUESTS  ADMITTED  DENIED  SPARED  
org     16        10        3       3       
user    16        10        6       0       
(all)   16        10        6       0       
`; table.String() != want[1:] {
		t.Errorf("got\n%s", &table)
	}
}

package decision_test

import (
	"testing"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/decision"
)

const (
	minute = 60_000_000_000
	hour   = 60 * minute
)

func TestHeadlineIsTheStrictest(t *testing.T) {
	left := func(remaining, capacity uint64) decision.Limit {
		return decision.Limit{Allowed: true, Remaining: remaining, Capacity: capacity}
	}
	denied := func(retry int64) decision.Limit { return decision.Limit{RetryAfter: retry, Capacity: 1} }
	shadow := func(l decision.Limit) decision.Limit {
		l.Shadow = true
		return l
	}
	for name, c := range map[string]struct {
		limits []decision.Limit
		want   int
	}{
		"nothing":                               {nil, -1},
		"one":                                   {[]decision.Limit{left(1, 2)}, 0},
		"the least share, not the least number": {[]decision.Limit{left(5, 10), left(40, 100), left(400, 1000)}, 1},
		"no share of the largest":               {[]decision.Limit{left(1e9, 1e9), left(1e9-1, 1e9)}, 1},
		"a denier before any other":             {[]decision.Limit{left(0, 10), denied(20 * 1e9)}, 1},
		"the longest wait":                      {[]decision.Limit{denied(20 * 1e9), denied(1200 * 1e9), denied(5)}, 1},
		"never is the longest":                  {[]decision.Limit{denied(hour), denied(-1)}, 1},
		"a shadow policy never":                 {[]decision.Limit{shadow(denied(-1)), left(100, 100)}, 1},
		"an exhausted shadow policy":            {[]decision.Limit{left(100, 100), shadow(left(0, 100))}, 0},
		"only shadow policies":                  {[]decision.Limit{shadow(denied(5))}, -1},
		"a limit of nothing":                    {[]decision.Limit{left(0, 0), left(1, 1)}, 0},
	} {
		if got := decision.Headline(c.limits); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestDelayIsTheLongestThatCounts(t *testing.T) {
	limits := []decision.Limit{{Delay: 5}, {Delay: 7}, {Delay: 9, Shadow: true}}
	if got := decision.Delay(limits); got != 7 {
		t.Errorf("got %d", got)
	}
}

func TestPermitIsTheFirstGranted(t *testing.T) {
	limits := []decision.Limit{{}, {PermitID: 4, Shadow: true}, {PermitID: 5}, {PermitID: 6}}
	if got := decision.Permit(limits); got != 2 {
		t.Errorf("got %d", got)
	}
	if got := decision.Permit(limits[:2]); got != -1 {
		t.Errorf("got %d", got)
	}
}

func TestEveryReasonHasAWord(t *testing.T) {
	seen := map[string]bool{}
	for r := bucket.ReasonNone; r <= bucket.ReasonRefunded; r++ {
		word := decision.Reason(r)
		if seen[word] || (word == "") != (r == bucket.ReasonNone) {
			t.Errorf("reason %d is %q", r, word)
		}
		seen[word] = true
	}
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/policy"
)

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":             "",
		"-clients 0":   "at least 1",
		"-duration 0s": "-duration",
		"-rate -1":     "-rate",
		"-amount 0":    "-amount 0",
		"-o yaml":      "-o yaml",
		"-clients 2 -o json -rate 150000 -amount 1000": "",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

func TestPolicyIsLeased(t *testing.T) {
	set, err := policy.Parse("policies.yaml", fmt.Appendf(nil, policies, 1000, 1000))
	if err != nil || set.Policies[0].Consistency != policy.Leased || set.Policies[0].Limit.Burst != 1000 {
		t.Errorf("%+v, %v", set, err)
	}
}

// TestVerdict: two clients that admitted so many in 3 s, of 100 a second and at once.
func TestVerdict(t *testing.T) {
	of := func(admitted, errors int64, leased uint64) []outcome {
		o := outcome{
			load.Report{Requests: admitted, Admitted: admitted/2 - 10, Errors: errors, Rate: 50, P99: 7, Error: "why"},
			load.Report{Requests: 10, Admitted: 10, Rate: 1000, P99: 1000},
			client.Stats{Leased: leased, Leases: 2, UnitsGranted: 9},
		}
		return []outcome{o, o}
	}
	for name, c := range map[string]struct {
		each []outcome
		want string
	}{
		"as many as may be": {of(500, 0, 5), ""},
		"more":              {of(502, 0, 5), "502 admitted in 3.000 s, at most 500 may be"},
		"errors":            {of(10, 1, 5), "2 errors, such as: why"},
		"nothing leased":    {of(10, 0, 0), "nothing was measured"},
	} {
		r := sum(c.each, 3*time.Second)
		if err := r.judge(100); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	r := sum(of(500, 0, 5), 3*time.Second)
	if r.Rate != 100 || r.P99 != 7 || r.Leased != 10 || r.Leases != 4 || r.Granted != 18 || r.Clients != 2 {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	if err := r.write(&out, "text"); err != nil || !strings.Contains(out.String(), "from leases") {
		t.Errorf("%v: %s", err, out.String())
	}
}

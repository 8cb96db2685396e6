package main

import (
	"strings"
	"testing"
)

func TestSimulateCommand(t *testing.T) {
	policies := file(t, "p.yaml", "policies: [{id: p, scope: tenant, algorithm: fixed_window, amount: 2, window: 1m}]\n")
	trace := file(t, "t.ndjson", strings.Repeat(`{"t":"59.5","request":{"tenant":"acme"}}`+"\n", 3)+`{"t":"60","cost":2,"request":{"tenant":"acme"}}`)
	code, out, errs := command(t, "simulate", "--policies", policies, "--trace", trace)
	want := `{"t":"59.5","allowed":true,"policy_id":"p","remaining":1,"retry_after_ns":0,"reset_after_ns":500000000,"delay_ns":0,"reason":""}
{"t":"59.5","allowed":true,"policy_id":"p","remaining":0,"retry_after_ns":0,"reset_after_ns":500000000,"delay_ns":0,"reason":""}
{"t":"59.5","allowed":false,"policy_id":"p","remaining":0,"retry_after_ns":500000000,"reset_after_ns":500000000,"delay_ns":0,"reason":"rate_limited"}
{"t":"60","allowed":true,"policy_id":"p","remaining":0,"retry_after_ns":0,"reset_after_ns":60000000000,"delay_ns":0,"reason":""}
`
	if code != 0 || out != want {
		t.Errorf("code %d: %s\n%s", code, errs, out)
	}
	code, out, _ = command(t, "simulate", "--policies", policies, "--trace", trace, "-o", "summary")
	if code != 0 || !strings.Contains(out, "p       4         3         1       0") {
		t.Errorf("code %d:\n%s", code, out)
	}
	bad := file(t, "bad.ndjson", `{"t":"1","request":{"tenant":"acme"}}`+"\n"+`{"t":"0","request":{}}`)
	code, out, errs = command(t, "simulate", "--policies", policies, "--trace", bad)
	if code != exitError || strings.Count(out, "\n") != 1 || !strings.Contains(errs, `bad.ndjson:2:6: "0" is before "1"`) {
		t.Errorf("code %d: %s\n%s", code, errs, out)
	}
	if code, _, errs := command(t, "simulate", "--policies", policies, "--trace", trace+"x"); code != exitError || !strings.Contains(errs, "no such file") {
		t.Errorf("code %d: %s", code, errs)
	}
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written is a file in a directory of the test.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPermitsAreRenewedAndReleased(t *testing.T) {
	file := written(t, "p.yaml", "policies:\n  - {id: flight, scope: [tenant], algorithm: concurrency, amount: 1, window: 1m}\n")
	addrs := devCluster(t, "--policies", file)
	check := func() (code int, permit string) {
		code, out, errs := command(t, "check", "--addr", addrs, "--tenant", "t", "-o", "json")
		var v struct {
			Limits []struct {
				Permit string `json:"permit_id"`
			} `json:"limits"`
			Permit string `json:"permit_id"`
		}
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatal(err, out, errs)
		}
		return code, v.Permit
	}
	code, permit := check()
	if code != 0 || permit == "" {
		t.Fatal(code, permit)
	}
	if code, _ := check(); code != exitDenied {
		t.Errorf("a second one: code %d", code)
	}
	for _, c := range []struct {
		verb string
		code int
		want string
	}{
		{"renew", 0, "held for 1m0s more\n"},
		{"release", 0, "released\n"},
		{"release", 0, "it had ended already\n"},
		{"renew", exitDenied, "it had ended already\n"},
	} {
		if code, out, errs := command(t, "permit", c.verb, permit, "--addr", addrs, "--tenant", "t"); code != c.code || out != c.want {
			t.Errorf("%s: code %d, %q, %q", c.verb, code, out, errs)
		}
	}
	if code, out, _ := command(t, "permit", "release", permit, "--addr", addrs, "-o", "json"); code != 0 || out != "{\"held\":false}\n" {
		t.Errorf("as JSON: code %d, %q", code, out)
	}
	if code, _, errs := command(t, "permit", "renew", "nonsense", "--addr", addrs); code != exitUsage {
		t.Errorf("no permit id: code %d, %q", code, errs)
	}
	if code, _ := check(); code != 0 {
		t.Errorf("after the release: code %d", code)
	}
}

func TestSlipsAreWarningsAndClashesAreFoundByDiff(t *testing.T) {
	file := written(t, "p.yaml", "policies:\n  - {id: a, family: f, match: {plan: x}, scope: [tenant], amount: 1, window: 1s}\n")
	addrs := devCluster(t, "--policies", file)
	slip := written(t, "slip.yaml", "policies:\n  - id: b\n    match: {rout: \"GET:/x\"}\n    scope: [tenant]\n    amount: 1\n    window: 1s\n")
	for _, args := range [][]string{{"validate"}, {"put", "--addr", addrs}} {
		code, _, errs := command(t, append(append([]string{"policy"}, args...), "-f", slip)...)
		if code != 0 || !strings.Contains(errs, `slip.yaml:3:13: policies[0].match.rout: "rout" is a free attribute`) || !strings.Contains(errs, "is route meant?") {
			t.Errorf("%s: code %d, %q", args[0], code, errs)
		}
	}
	clash := written(t, "clash.yaml", "policies:\n  - {id: c, family: f, match: {plan: x}, scope: [tenant], amount: 2, window: 1s}\n")
	for _, args := range [][]string{{"diff", "--addr", addrs}, {"diff", "--against", file}, {"put", "--addr", addrs}} {
		code, _, errs := command(t, append(append([]string{"policy"}, args...), "-f", clash)...)
		if code != exitUsage && code != 1 || !strings.Contains(errs, "the same as that of a") || !strings.Contains(errs, "clash.yaml:2") {
			t.Errorf("%v: code %d, %q", args, code, errs)
		}
		if code, _, errs := command(t, append(append([]string{"policy"}, args...), "-f", clash, "--prune")...); args[0] == "diff" && code != 0 {
			t.Errorf("%v --prune: code %d, %q", args, code, errs)
		}
	}
	route := written(t, "route.yaml", "policies:\n  - id: d\n    match: {route: /v1/x}\n    scope: [tenant]\n    amount: 1\n    window: 1s\n")
	if code, _, errs := command(t, "policy", "validate", "-f", route); code == 0 ||
		!strings.Contains(errs, `route.yaml:3:13: policies[0].match.route: "/v1/x", want METHOD:/path as requests have it, such as "GET:/v1/x"`) {
		t.Errorf("code %d, %q", code, errs)
	}
}

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// file writes a file of a test and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// terminal runs commands against one cluster.
type terminal struct {
	t     *testing.T
	addrs string
}

// run runs a command that has to end with a code, and returns what it said.
func (c *terminal) run(want int, args ...string) string {
	c.t.Helper()
	code, out, errs := command(c.t, append(args, "--addr", c.addrs)...)
	if code != want {
		c.t.Errorf("%q: code %d, want %d: %s%s", args, code, want, out, errs)
	}
	return out + errs
}

// says runs a command that has to say something.
func (c *terminal) says(want int, part string, args ...string) {
	c.t.Helper()
	if got := c.run(want, args...); !strings.Contains(got, part) {
		c.t.Errorf("%q says\n%s\nwant %q", args, got, part)
	}
}

// json runs a command and reads its answer.
func (c *terminal) json(want int, v any, args ...string) {
	c.t.Helper()
	if got := c.run(want, append(args, "-o", "json")...); json.Unmarshal([]byte(got), v) != nil {
		c.t.Errorf("%q says %s", args, got)
	}
}

const paymentsV1 = "policies:\n  - {id: payments, scope: tenant, algorithm: token_bucket, rate_per_second: 10}\n"

func TestPolicyCommandsOfADevCluster(t *testing.T) {
	first := file(t, "first.yaml", paymentsV1)
	second := file(t, "second.yaml", strings.Replace(paymentsV1, "10", "20, burst: 40", 1))
	c := &terminal{t, devCluster(t, "--policies", first)}
	c.says(0, "payments  1        enforce  token_bucket  10 per 1s, burst 10", "policy", "list")
	c.says(0, "amount: 10 → 20", "policy", "diff", "-f", second)
	c.says(0, "nothing would change", "policy", "diff", "-f", first)
	c.says(0, "nothing changed, version 1", "policy", "put", "-f", first)
	c.says(0, "version 2", "policy", "put", "-f", second, "--if-match", "policy-version-1")
	c.says(exitError, "version 2", "policy", "put", "-f", second, "--if-match", `"policy-version-1"`)
	var put struct {
		Changed bool
		Version uint64
	}
	if c.json(0, &put, "policy", "put", "-f", second, "--if-match", "2"); !put.Changed || put.Version != 3 {
		t.Errorf("equal content with If-Match: %+v", put)
	}
	var got struct {
		Version uint64
		Burst   int
	}
	if c.json(0, &got, "policy", "get", "payments"); got.Version != 3 || got.Burst != 40 {
		t.Errorf("get: %+v", got)
	}
	c.says(0, "version 4", "policy", "rollback", "payments", "--to", "1", "--if-match", "3")
	if c.json(0, &got, "policy", "get", "payments"); got.Version != 4 || got.Burst != 10 {
		t.Errorf("after the rollback: %+v", got)
	}
	var history []versionJSON
	if c.json(0, &history, "policy", "history", "payments"); len(history) != 4 || history[0].Action != "rollback" || history[0].Who == "" {
		t.Errorf("history: %+v", history)
	}
	c.says(exitError, "version 4", "policy", "delete", "payments", "--if-match", "3")
	c.says(0, "version 5", "policy", "delete", "payments", "--if-match", "4")
	c.says(exitError, "payments", "policy", "get", "payments")
	c.says(0, "(deleted)", "policy", "history", "payments")
	c.says(0, "delete", "policy", "audit")
	var audit []auditEntry
	if c.json(0, &audit, "policy", "audit", "--limit", "2"); len(audit) != 2 || audit[0].Action != "delete" || audit[1].Changes[0].ID != "payments" {
		t.Errorf("audit: %+v", audit)
	}
	var list struct {
		Version uint64
		Set     struct{ Policies []struct{ ID string } }
	}
	if c.json(0, &list, "policy", "list"); list.Version != 5 || len(list.Set.Policies) != 0 {
		t.Errorf("list: %+v", list)
	}
}

func TestABadFileChangesNothing(t *testing.T) {
	c := &terminal{t, devCluster(t, "--policies", file(t, "p.yaml", paymentsV1))}
	bad := "policies:\n  - {id: other, scope: tenant, algorithm: token_bucket, rate_per_second: 10}\n" + strings.Repeat("#\n", 37) +
		"  - {id: payments, scope: tenant, algorithm: token_bucket, amount: 1, window: 1us}\n"
	path := file(t, "bad.yaml", bad)
	for _, args := range [][]string{{"policy", "put", "-f", path}, {"policy", "diff", "-f", path}, {"policy", "validate", "-f", path}} {
		c.says(exitError, "bad.yaml:40:71: policies[1].window:", args...)
	}
	c.says(0, "version 1 ", "policy", "list")
}

func TestFilesAreJudgedWithoutACluster(t *testing.T) {
	old, next := file(t, "old.yaml", paymentsV1), file(t, "next.yaml", "policies: []\n")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{0, "is valid: 1 policy\n", []string{"validate", "-f", old}},
		{0, `{"policies":1,"valid":true}`, []string{"validate", "-f", old, "-o", "json"}},
		{0, "nothing would change", []string{"diff", "-f", next, "--against", old}},
		{0, "- payments", []string{"diff", "-f", next, "--against", old, "--prune"}},
		{0, `[{"kind":"removed","id":"payments"}]`, []string{"diff", "-f", next, "--against", old, "--prune", "-o", "json"}},
		{0, `[]`, []string{"diff", "-f", next, "--against", old, "-o", "json"}},
		{exitError, "no such file", []string{"validate", "-f", old + "x"}},
		{exitUsage, "-f FILE is missing", []string{"validate"}},
	} {
		code, out, errs := command(t, append([]string{"policy"}, c.args...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%q: code %d: %s%s", c.args, code, out, errs)
		}
	}
}

func TestScalesAndDeadlines(t *testing.T) {
	for text, want := range map[string][2]uint64{
		"": {}, "2": {2, 1}, "1.5": {3, 2}, "3/2": {3, 2}, "0.001": {1, 1000}, "10/4": {5, 2}, "1000000000": {1e9, 1},
		"0": {}, "-1": {}, "1e9": {}, "1000000001": {}, "1/0": {}, "x": {}, "1/1000000001": {}, "1/2/3": {}, ".": {},
	} {
		times, per, err := parseScale(text)
		if [2]uint64{times, per} != want || (err != nil) != (want == [2]uint64{} && text != "") {
			t.Errorf("%q: %d/%d, %v", text, times, per, err)
		}
	}
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	if end, err := deadline(now, time.Hour, ""); err != nil || end != now.Add(time.Hour).UnixNano() {
		t.Errorf("%d, %v", end, err)
	}
	if end, err := deadline(now, 0, "2026-01-02T16:04:05+01:00"); err == nil {
		t.Errorf("a deadline that has passed: %d", end)
	}
	if end, err := deadline(now, 0, "2026-01-02T16:04:06+01:00"); err != nil || end != now.Add(time.Second).UnixNano() {
		t.Errorf("%d, %v", end, err)
	}
	for _, c := range []struct {
		length time.Duration
		until  string
	}{{0, ""}, {time.Hour, "2027-01-02T15:04:05Z"}, {-time.Hour, ""}, {0, "tomorrow"}} {
		if _, err := deadline(now, c.length, c.until); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestVersionsAreReadAsETags(t *testing.T) {
	for text, want := range map[string]uint64{"811": 811, "policy-version-811": 811, `"policy-version-811"`: 811, "0": 0} {
		if v, err := ifMatch(text); err != nil || v == nil || *v != want {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
	if v, err := ifMatch(""); v != nil || err != nil {
		t.Errorf("none: %v, %v", v, err)
	}
	for _, text := range []string{"x", "-1", "policy-version-", "1.5"} {
		if _, err := ifMatch(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

func TestOverridesOfADevCluster(t *testing.T) {
	c := &terminal{t, devCluster(t, "--policies", file(t, "p.yaml", paymentsV1))}
	key := []string{"--policy", "payments", "--tenant", "acme"}
	c.says(0, "version 2", append(key, "override", "set", "--scale", "1.5", "--for", "1h")...)
	c.says(0, "times 3/2", "override", "list")
	var d struct {
		Limit   uint64
		Explain explainJSON
	}
	if c.json(0, &d, "check", "--tenant", "acme", "--explain"); d.Limit != 15 || d.Explain.Policies[0].Override == "" {
		t.Errorf("check: %+v", d)
	}
	if c.json(0, &d, "check", "--tenant", "other"); d.Limit != 10 {
		t.Errorf("another tenant: %+v", d)
	}
	c.run(0, "override", "set", "--policy", "payments", "--key", "tenant=acme", "--amount", "3", "--burst", "4", "--until", "2099-01-01T00:00:00Z")
	c.says(0, "amount 3  burst 4", "override", "list")
	c.run(exitError, "override", "set", "--policy", "payments", "--key", "user=u", "--amount", "3", "--for", "1h")
	c.run(0, append(key, "override", "clear")...)
	var list []any
	if c.json(0, &list, "override", "list"); len(list) != 0 {
		t.Errorf("list: %v", list)
	}
}

func TestExplainRefundAndCosts(t *testing.T) {
	c := &terminal{t, devCluster(t, "--policies", file(t, "p.yaml", `policies:
  - {id: bytes, scope: tenant, algorithm: fixed_window, amount: 100, window: 8760h}
  - {id: calls, scope: tenant, algorithm: fixed_window, amount: 10, window: 8760h}
  - {id: users, scope: user, algorithm: fixed_window, amount: 10, window: 8760h}
`))}
	who := []string{"--tenant", "acme", "--request-id", "r1"}
	var d struct {
		Allowed bool
		Limits  []limitJSON
		Explain explainJSON
	}
	c.json(0, &d, append(who, "check", "--cost-of", "bytes=60", "--explain")...)
	if len(d.Limits) != 2 || d.Limits[0].Remaining != 40 || d.Limits[1].Remaining != 9 {
		t.Errorf("limits %+v", d.Limits)
	}
	x := d.Explain.Policies
	if len(x) != 3 || !x[0].Applies || *x[0].Before != 100 || *x[0].After != 40 || *x[0].Cost != 60 || x[2].Applies || !strings.Contains(x[0].Source, "p.yaml:2") {
		t.Errorf("explained %+v", x)
	}
	c.says(exitDenied, "the request has no user", "check", "--tenant", "acme", "--cost-of", "bytes=60", "--explain")
	c.says(0, "bytes (version 1): 100 of 100 left", append(who, "refund")...)
	c.says(0, "nothing to refund", append(who, "refund")...)
	var r struct{ Refunded bool }
	if c.json(0, &r, append(who, "refund")...); r.Refunded {
		t.Error("refunded twice")
	}
	c.says(exitUsage, "--request-id", "refund", "--tenant", "acme")
}

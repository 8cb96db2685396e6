package main

import (
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/policy"
)

const envoyConfig = `
domain: edge
descriptors:
  - {key: path, value: /login, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 5}}
  - {key: path, rate_limit: {unit: second, requests_per_unit: 100}}
`

func TestImportedEnvoyConfigurationIsAPolicyFile(t *testing.T) {
	path := file(t, "edge.yaml", envoyConfig)
	code, out, errs := command(t, "policy", "import", "envoy", path, "--algorithm", "fixed_window")
	set, err := policy.Parse("out", []byte(out))
	if code != 0 || err != nil || len(set.Policies) != 2 {
		t.Fatalf("code %d, %v: %s", code, err, out)
	}
	for _, part := range []string{
		"difference: " + path + ":4: descriptors[0]: in shadow mode it does not lift the more general limit of " + path + ":5",
		"difference: all limits: the windows of each key begin at a time of its own",
	} {
		if !strings.Contains(errs, part) {
			t.Errorf("stderr does not say %q:\n%s", part, errs)
		}
	}
	valid := file(t, "policies.yaml", out)
	if code, out, errs := command(t, "policy", "validate", "-f", valid); code != 0 || !strings.Contains(out, "2 policies") {
		t.Errorf("validate: code %d: %s%s", code, out, errs)
	}
}

func TestImportRefuses(t *testing.T) {
	good, bad := file(t, "good.yaml", envoyConfig), file(t, "bad.yaml", strings.Replace(envoyConfig, "minute", "fortnight", 1))
	for _, c := range []struct {
		code int
		says string
		args []string
	}{
		{1, bad + `:4:51: descriptors[0].rate_limit.unit: "fortnight", want second`, []string{bad}},
		{1, "no such file", []string{"missing.yaml"}},
		{2, "FILE is missing", nil},
		{2, `--algorithm "leaky_bucket": want sliding_window`, []string{good, "--algorithm", "leaky_bucket"}},
		{1, "a second descriptor of the key", []string{good, good}},
	} {
		code, out, errs := command(t, append([]string{"policy", "import", "envoy"}, c.args...)...)
		if code != c.code || out != "" || !strings.Contains(errs, c.says) {
			t.Errorf("%q: code %d, want %d: %s%s", c.args, code, c.code, out, errs)
		}
	}
}

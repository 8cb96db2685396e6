package main

import (
	"io"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/policy"
)

func TestCommandLine(t *testing.T) {
	for _, args := range [][]string{
		{"-points", "65"},
		{"-traffic", "fill"},
		{"-traffic", "none"},
		{"-contenders", "memcached"},
		{"-memory", "x"},
		{"-rounds", "-1"},
		{"-keys", "0"},
		{"-duration", "0s"},
		{"-multiplex", "9"},
		{"-wait-flush-delay", "-1us"},
		{"-gubernator-procs", "-1"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("%q were taken", args)
		}
	}
	r, err := parse([]string{"-points", "64,open", "-contenders", "redis-wait,redis", "-memory", "10,20"}, io.Discard)
	if err != nil || len(r.Points) != 2 || len(r.Contenders) != 2 || len(r.Memory) != 2 || !r.needs(redis) || r.needs(guber) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestOnlyWhatIsMissingIsMeasured: a second run of the same command goes on.
func TestOnlyWhatIsMissingIsMeasured(t *testing.T) {
	r, err := parse([]string{"-points", "64,16x500,open", "-traffic", "uniform,mixed,hot"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r.results = &Results{Samples: []Sample{sampleOf(1, redis, Uniform, "64", 10)}}
	for system, want := range map[string]int{
		ours3: 4, // 64 twice, 16x500, open
		redis: 7, // without and with WAIT: 64 twice, 16x500, open; less the one that is there
		guber: 4,
	} {
		if got := r.missing(1, system); len(got) != want {
			t.Errorf("%s: %d to measure, want %d: %+v", system, len(got), want, got)
		}
	}
	if got := r.missing(2, redis); len(got) != 8 {
		t.Errorf("round 2: %d to measure, want 8", len(got))
	}
}

func TestResultsOfOtherSettingsAreRefused(t *testing.T) {
	r, err := parse([]string{"-o", t.TempDir(), "-rlnode", "none"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	r.results = &Results{}
	if err := r.settle(); err != nil {
		t.Fatal(err)
	}
	if err := r.settle(); err != nil {
		t.Errorf("the same settings are refused: %v", err)
	}
	r.Setup.Keys++
	if err := r.settle(); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("other settings: %v", err)
	}
}

func TestPoliciesAreValid(t *testing.T) {
	if _, err := policy.Parse("policies.yaml", policies); err != nil {
		t.Error(err)
	}
}

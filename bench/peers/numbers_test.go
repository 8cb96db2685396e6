package main

import (
	"math"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
	}
}

// sampleOf is a good measurement: so many decisions in a second.
func sampleOf(round int, contender string, kind Kind, point string, decisions int64) Sample {
	s := Sample{Round: round, Contender: contender, Kind: kind, Point: point}
	s.Requests, s.Admitted = decisions, int64(math.Round(float64(decisions)*kind.share()))
	s.Denied, s.Seconds, s.Rate = decisions-s.Admitted, 1, float64(decisions)
	s.P50, s.P99, s.Max = 1000, 5000, 9000
	s.ClientCPU, s.ServerCPU = float64(decisions)*5e-6, []float64{float64(decisions) * 4e-6, float64(decisions) * 6e-6}
	return s
}

func TestCellIsTheMedianOfRoundsThatCount(t *testing.T) {
	failed := sampleOf(4, redis, Uniform, "64", 900_000)
	failed.Failed = "the client died"
	c := cell([]Sample{
		sampleOf(1, redis, Uniform, "64", 100_000), sampleOf(2, redis, Uniform, "64", 300_000),
		sampleOf(3, redis, Uniform, "64", 200_000), failed,
	})
	if !c.counts() || c.Rounds != 3 || c.Void != 1 || c.Why != "the client died" {
		t.Fatalf("%+v", c)
	}
	if c.Rate != 200_000 || c.Low != 100_000 || c.High != 300_000 || c.P50 != 1 || c.P99 != 5 || c.Max != 9 {
		t.Errorf("%+v", c)
	}
	if math.Abs(c.ClientCPU-5) > 1e-9 || math.Abs(c.ServerCPU-10) > 1e-9 {
		t.Errorf("CPU seconds per million: client %v, servers %v; want 5 and 10", c.ClientCPU, c.ServerCPU)
	}
}

func TestSamplesThatProveNothingAreVoid(t *testing.T) {
	wrong := sampleOf(1, redis, Abusive, "64", 100_000)
	wrong.Admitted, wrong.Denied = wrong.Denied, wrong.Admitted
	few := sampleOf(1, redis, Uniform, "64", 100_000)
	few.Errors = 500
	few.Error = "too late"
	for name, s := range map[string]Sample{
		"wrong share": wrong, "errors": few, "nothing": {Kind: Uniform}, "failed": {Failed: "no"},
	} {
		if s.void() == "" {
			t.Errorf("%s: counts", name)
		}
	}
	for _, k := range []Kind{Uniform, Zipf, Hot, Abusive, Mixed} {
		s := sampleOf(1, redis, k, "64", 100_000)
		if why := s.void(); why != "" {
			t.Errorf("%s is void: %s", k, why)
		}
	}
}

func TestNumbersReadWell(t *testing.T) {
	for v, want := range map[float64]string{7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(v); got != want {
			t.Errorf("thousands(%v) = %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{1.234: "1.23", 12.34: "12.3", 123.4: "123"} {
		if got := digits(v); got != want {
			t.Errorf("digits(%v) = %s, want %s", v, got, want)
		}
	}
	if s := short("a|b\n" + strings.Repeat("x", 200)); strings.ContainsAny(s, "|\n") || len([]rune(s)) > 121 {
		t.Errorf("short: %q", s)
	}
}

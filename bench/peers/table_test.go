package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// someResults are two rounds of two contenders, one of which fails at one point.
func someResults() *Results {
	r := &Results{Machine: Machine{Machine: fleet.Machine{CPU: "a <processor>", Cores: 2, Date: "today"}}, Settings: Settings{Keys: 1000, Duration: "1s", Warm: "0s"}}
	for round := 1; round <= 2; round++ {
		for _, p := range []string{"64", "256"} {
			r.Samples = append(r.Samples, sampleOf(round, ours3, Uniform, p, 200_000), sampleOf(round, redis, Uniform, p, 50_000))
		}
		bad := sampleOf(round, guber, Uniform, "64", 10_000)
		bad.Errors, bad.Error = 10_000, "no answer | at all"
		r.Samples = append(r.Samples, bad)
	}
	r.Memory = []Memory{{System: redis, Keys: 1000, Processes: []Holder{
		{Resident: [3]float64{1000, 201_000, 191_000}, Held: [3]float64{500, 170_500, 170_500}},
		{Resident: [3]float64{1000, 201_000, 191_000}, Held: [3]float64{500, 170_500, 170_500}},
	}}, {System: guber, Keys: 1000, Processes: []Holder{{Resident: [3]float64{0, 100_000, 100_000}}, {Resident: [3]float64{0, 200_000, 200_000}}}}}
	return r
}

func TestTableHasRatiosVoidsAndNotes(t *testing.T) {
	var b strings.Builder
	someResults().table(&b)
	text := b.String()
	for _, want := range []string{
		"| 256 callers | Redis | 50,000 (50,000–50,000) | 4.00 |  | 1.00 | 5.00 | 9.00 | 5.00 | 10.0 | 15.0 | 100.0 % | 2 |",
		"| 64 callers | gubernator | void: 100.0 % errors, the first: no answer / at all |",
		"| 1,000 | Redis | 200 | 190 | 170.0 | 170.0 |",
		"| 1,000 | gubernator | 300 | 300 | not told | not told |",
		"What these figures do not compare",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "Zipf") {
		t.Error("a table of traffic that was not measured")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| 64") || strings.HasPrefix(line, "| 256") {
			if n := strings.Count(line, "|"); n != 14 {
				t.Errorf("%d cells: %s", n-1, line)
			}
		}
	}
}

func TestPlotsAreSVGWithEveryLine(t *testing.T) {
	plots := someResults().plots()
	if len(plots) != 3 {
		t.Fatalf("%d plots, want three", len(plots))
	}
	for name, svg := range plots {
		if strings.Count(svg, "<polyline") != 2 || strings.Count(svg, "<circle") != 4 || strings.Contains(svg, "%!") || strings.Contains(svg, "NaN") {
			t.Errorf("%s: %s", name, svg)
		}
		dec := xml.NewDecoder(strings.NewReader(svg))
		for {
			_, err := dec.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

func TestAxisPlacesDecadesEvenly(t *testing.T) {
	a := axis{low: 1, high: 1000, from: 0, to: 300}
	for v, want := range map[float64]float64{1: 0, 10: 100, 1000: 300} {
		if got := a.at(v); got < want-0.01 || got > want+0.01 {
			t.Errorf("%v is at %v, want %v", v, got, want)
		}
	}
	for _, m := range a.marks() {
		if m < a.low || m > a.high {
			t.Errorf("mark %v is outside", m)
		}
	}
}

func TestResultsAreKept(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "results.json")
	if r, err := loadResults(file); err != nil || len(r.Samples) != 0 {
		t.Fatalf("%v, %v", r, err)
	}
	want := someResults()
	if err := want.save(file); err != nil {
		t.Fatal(err)
	}
	got, err := loadResults(file)
	if err != nil {
		t.Fatal(err)
	}
	if !got.has(2, redis, Uniform, "256") || got.has(3, redis, Uniform, "256") || got.has(2, redis, Hot, "256") {
		t.Error("what was measured is not what is known")
	}
	if s := got.of(redis, Uniform, "64"); len(s) != 2 || s[0].Rate != 50_000 || s[1].ServerCPU[1] != want.Samples[1].ServerCPU[1] {
		t.Errorf("%+v", s)
	}
	if err := got.publish(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadResults(file); err == nil {
		t.Error("half a file was read")
	}
}

func TestDisturbedSampleIsVoidAndReplaced(t *testing.T) {
	r := &Results{}
	s := sampleOf(1, redis, Uniform, "64", 10)
	s.Foreign = mostForeign + 0.01
	r.add(s)
	if s.void() == "" || r.has(1, redis, Uniform, "64") {
		t.Errorf("a disturbed sample counts: %q", s.void())
	}
	s.Foreign = mostForeign
	r.add(s)
	if got := r.of(redis, Uniform, "64"); len(got) != 1 || got[0].void() != "" || !r.has(1, redis, Uniform, "64") {
		t.Errorf("%+v", got)
	}
}

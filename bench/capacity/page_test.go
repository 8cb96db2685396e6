package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
)

const page = "../../docs/capacity.md"

// TestThePageIsPrinted: each table of the page is what this program prints.
func TestThePageIsPrinted(t *testing.T) {
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	next, err := renew(string(old), blocks(remembered))
	if err != nil {
		t.Fatal(err)
	}
	if next == string(old) {
		return
	}
	was, now := strings.Split(string(old), "\n"), strings.Split(next, "\n")
	for i := range min(len(was), len(now)) {
		if was[i] != now[i] {
			t.Fatalf("docs/capacity.md:%d is not what the program prints: run make capacity\n%s\n%s", i+1, was[i], now[i])
		}
	}
	t.Fatalf("docs/capacity.md has %d lines, want %d: run make capacity", len(was), len(now))
}

// TestBlocksAreFound: a block that is unknown, open, twice or missing is said so.
func TestBlocksAreFound(t *testing.T) {
	made := map[string]func() (string, error){"a": func() (string, error) { return "new\n", nil }}
	got, err := renew("x\n<!-- capacity: a -->\nold\n<!-- end -->\ny", made)
	if want := "x\n<!-- capacity: a -->\n\nnew\n\n<!-- end -->\ny"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, wrong := range []string{
		"", "<!-- capacity: b --><!-- end -->", "<!-- capacity: a -->",
		"<!-- capacity: a --><!-- end --><!-- capacity: a --><!-- end -->",
	} {
		if _, err := renew(wrong, made); err == nil {
			t.Errorf("%q passes", wrong)
		}
	}
}

// TestSourcesStand: each constant has a source, and what it quotes is still there. A
// figure that was measured anew makes this fail: then the constant is to follow.
func TestSourcesStand(t *testing.T) {
	c, sources := measuredConstants()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]float64
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		field := strings.ReplaceAll(s.flag, "-", "_")
		v, ok := fields[field]
		if !ok || v != *s.value || v <= 0 {
			t.Errorf("-%s is no constant, or not above 0: %v", s.flag, v)
		}
		delete(fields, field)
		text, err := os.ReadFile("../../" + s.file)
		if err != nil || !strings.Contains(string(text), s.quote) || s.from == "" || s.quote == "" {
			t.Errorf("-%s: %q is not in %s, %v", s.flag, s.quote, s.file, err)
		}
	}
	if len(fields) > 0 {
		t.Errorf("constants without a source: %v", fields)
	}
}

// TestAgainstWhatWasMeasured: for many callers it counts no less CPU than was measured,
// and not more than 2.2 times it. It counts less for one caller, who never meets another.
func TestAgainstWhatWasMeasured(t *testing.T) {
	text, err := os.ReadFile("../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := measuredConstants()
	for _, p := range points {
		if !strings.Contains(string(text), p.quote) {
			t.Errorf("%s is not in docs/testing.md any more", p.quote)
		}
		least := 0.95
		if p.callers == 1 {
			least = 0.5
		}
		if r := p.counted(c) / p.cpu; r < least || r > 2.2 {
			t.Errorf("%d callers: %.0f CPU s per million counted, %.0f measured", p.callers, p.counted(c), p.cpu)
		}
	}
}

// TestCommandLine: what is wrong is refused and named; output is text, or JSON that says the same.
func TestCommandLine(t *testing.T) {
	for arg, want := range map[string]string{
		"-peak=-1": "-peak", "-admitted=1.1": "-admitted", "-replicas=4": "-replicas", "-replicas=2": "-survive", "-slots=100": "-slots",
		"-o=xml": "-o", "-heap=-1": "-heap", "-use=0": "-use", "-idle-expiry=-1s": "-idle-expiry", "-peak=x": "peak", "-peak=NaN": "-peak", "more": "more",
	} {
		if _, err := parse([]string{arg}, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it named %s", arg, err, want)
		}
	}
	o, err := parse([]string{"-peak", "1_000", "-o", "json"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(o, &out); err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil || a.Load.Peak != 1000 || a.Nodes < 3 || a.Binds == "" {
		t.Errorf("%v, %+v", err, a)
	}
}

package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shape is an element of a chart: its attributes by name, and "" for the text in it.
type shape map[string]string

// charts parses every SVG of a page, as strictly as XML is, into its shapes.
func charts(t *testing.T, page string) (all [][]shape) {
	t.Helper()
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1) {
		var chart []shape
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			token, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("not well-formed: %v\n%s", err, svg)
			}
			switch e := token.(type) {
			case xml.StartElement:
				s := shape{"element": e.Name.Local}
				for _, a := range e.Attr {
					s[a.Name.Local] = a.Value
				}
				chart = append(chart, s)
			case xml.CharData:
				chart[len(chart)-1][""] += string(e)
			}
		}
		all = append(all, chart)
	}
	return all
}

// those are the shapes of a class.
func those(chart []shape, class string) (found []shape) {
	for _, s := range chart {
		if s["class"] == class {
			found = append(found, s)
		}
	}
	return found
}

func texts(chart []shape) (words []string) {
	for _, s := range chart {
		if s["element"] == "text" {
			words = append(words, s[""])
		}
	}
	return words
}

// TestChartsShowWhatHappened: the page's tags match, and its three charts have the
// fault, the stall, the new leader and the lines where they belong on the time axis.
func TestChartsShowWhatHappened(t *testing.T) {
	r := trial()
	r.Acts[0].Faults[0].Name = "kill <&>"
	var page bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	wellFormed(t, page.String())
	all := charts(t, page.String())
	if len(all) != 3 {
		t.Fatalf("%d charts, want faults, load and latency", len(all))
	}
	a := &r.Acts[0]
	at := func(d time.Duration) string {
		return fmt.Sprintf("%.1f", left+width*float64(d)/float64(a.Lasted))
	}
	wide := func(d time.Duration) string { return fmt.Sprintf("%.1f", width*float64(d)/float64(a.Lasted)) }
	for i, c := range all {
		f := a.Stalls[0]
		if s := those(c, "stall"); len(s) != 1 || s[0]["x"] != at(f.From) || s[0]["width"] != wide(f.To-f.From) {
			t.Errorf("chart %d: stalls %v", i, s)
		}
		if l := those(c, "leader"); len(l) != 1 || l[0]["x1"] != at(a.Leaders[0].At) {
			t.Errorf("chart %d: leaders %v", i, l)
		}
		if !slices.Contains(texts(c), "1 s") {
			t.Errorf("chart %d: no second on its axis: %q", i, texts(c))
		}
	}
	f := a.Faults[0]
	on, heal := those(all[0], "fault"), those(all[0], "heal")
	if len(on) != 1 || on[0]["x"] != at(f.From) || on[0]["width"] != wide(f.To-f.From) {
		t.Errorf("faults %v", on)
	}
	if len(heal) != 1 || heal[0]["x"] != at(f.To) || heal[0]["width"] != wide(f.Healed-f.To) {
		t.Errorf("healing %v", heal)
	}
	if !slices.Contains(texts(all[0]), "kill <&>") {
		t.Errorf("no name of the fault in %q", texts(all[0]))
	}
	drawn(t, all[1], "answered", "failed")
	drawn(t, all[2], "p99", "max")
	if p := those(all[2], "p50"); len(p) != 1 || !strings.HasPrefix(p[0]["d"], "M160.0 88.8L") { // 2 ms, between 1 and 10
		t.Errorf("the median: %v", p)
	}
	if !slices.Contains(texts(all[1]), "30/s") { // three answers in a bin of 100 ms
		t.Errorf("the scale of the load: %q", texts(all[1]))
	}
}

// drawn wants one line of each class, that moves and stays inside its chart.
func drawn(t *testing.T, chart []shape, classes ...string) {
	t.Helper()
	number := regexp.MustCompile(`-?[0-9.]+`)
	for _, class := range classes {
		paths := those(chart, class)
		if len(paths) != 1 {
			t.Errorf("%s: %d lines", class, len(paths))
			continue
		}
		heights := map[string]bool{}
		for i, n := range number.FindAllString(paths[0]["d"], -1) {
			v, err := strconv.ParseFloat(n, 64)
			low, high := float64(left), float64(left+width)
			if i%2 == 1 {
				low, high = 0, height
				heights[n] = true
			}
			if err != nil || v < low || v > high {
				t.Errorf("%s: %s is outside: %s", class, n, paths[0]["d"])
			}
		}
		if len(heights) < 2 {
			t.Errorf("%s is flat: %s", class, paths[0]["d"])
		}
	}
}

// wellFormed wants every tag of a page closed, in order.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = true, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatalf("the page: %v", err)
		}
	}
}

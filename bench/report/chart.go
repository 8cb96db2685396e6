package report

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"
)

// All charts of an act share their time axis: width units for its whole length.
const (
	width  = 1000
	left   = 110 // of names and scales
	height = 120
	row    = 16
)

// chart is an SVG in the making.
type chart struct {
	b      strings.Builder
	lasted time.Duration
}

func newChart(a Act, high int) *chart {
	c := &chart{lasted: max(a.Lasted, time.Millisecond)}
	fmt.Fprintf(&c.b, `<svg viewBox="0 0 %d %d" role="img">`, left+width, high+row)
	for _, s := range a.Stalls {
		c.span("stall", s.From, s.To, 0, high)
	}
	for _, l := range a.Leaders {
		fmt.Fprintf(&c.b, `<line class="leader" x1="%.1[1]f" x2="%.1[1]f" y1="%d" y2="%d"/>`, c.x(l.At), high-5, high)
	}
	step := tick(c.lasted)
	for t := time.Duration(0); t <= c.lasted; t += step {
		fmt.Fprintf(&c.b, `<line class="grid" x1="%.1[1]f" x2="%.1[1]f" y1="0" y2="%[2]d"/><text x="%.1[1]f" y="%[3]d">%[4]d s</text>`,
			c.x(t), high, high+row-4, int(t.Seconds()))
	}
	return c
}

// tick is a step of the time axis that gives some ten marks.
func tick(lasted time.Duration) time.Duration {
	for _, s := range []time.Duration{1, 2, 5, 10, 20, 30, 60} {
		if lasted <= 12*s*time.Second {
			return s * time.Second
		}
	}
	return 5 * time.Minute
}

func (c *chart) x(t time.Duration) float64 {
	return left + width*float64(min(t, c.lasted))/float64(c.lasted)
}

func (c *chart) span(class string, from, to time.Duration, y, high int) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%.1f" y="%d" width="%.1f" height="%d"/>`, class, c.x(from), y, max(1, c.x(to)-c.x(from)), high)
}

func (c *chart) label(y int, text string) {
	fmt.Fprintf(&c.b, `<text x="0" y="%d">%s</text>`, y, template.HTMLEscapeString(text))
}

func (c *chart) end() template.HTML {
	c.b.WriteString("</svg>")
	return template.HTML(c.b.String()) // all text in it went through label
}

// timeline draws each kind of fault on a line of its own.
func timeline(a Act) template.HTML {
	rows := map[string]int{}
	for _, f := range a.Faults {
		if _, ok := rows[f.Name]; !ok {
			rows[f.Name] = len(rows)
		}
	}
	c := newChart(a, max(1, len(rows))*row)
	for name, i := range rows {
		c.label(i*row+12, name)
	}
	for _, f := range a.Faults {
		y := rows[f.Name]*row + 2
		c.span("heal", f.To, f.Healed, y, row-5)
		c.span("fault", f.From, f.To, y, row-5)
	}
	return c.end()
}

// line draws a value of each bin, scaled to the chart's height.
func (c *chart) line(class string, bins []Bin, value func(Bin) (y float64, ok bool)) {
	fmt.Fprintf(&c.b, `<path class="%s" d="`, class)
	move := "M"
	for i, b := range bins {
		y, ok := value(b)
		if !ok {
			move = "M"
			continue
		}
		fmt.Fprintf(&c.b, "%s%.1f %.1f", move, c.x(time.Duration(i)*BinWidth+BinWidth/2), height*(1-min(1, max(0, y))))
		move = "L"
	}
	c.b.WriteString(`"/>`)
}

// loadChart draws answers and failures a second.
func loadChart(a Act) template.HTML {
	most := 1
	for _, b := range a.Bins {
		most = max(most, b.Answered, b.Failed)
	}
	c := newChart(a, height)
	c.label(11, fmt.Sprintf("%d/s", most*int(time.Second/BinWidth)))
	c.label(height, "0")
	c.line("answered", a.Bins, func(b Bin) (float64, bool) { return float64(b.Answered) / float64(most), true })
	c.line("failed", a.Bins, func(b Bin) (float64, bool) { return float64(b.Failed) / float64(most), true })
	return c.end()
}

// The scale of latencies: five decades.
const (
	quickest = 100 * time.Microsecond
	decades  = 5
)

// latencyChart draws quantiles on a logarithmic scale.
func latencyChart(a Act) template.HTML {
	c := newChart(a, height)
	for i := range decades + 1 {
		y := height - i*height/decades
		c.label(max(11, y), (quickest * time.Duration(math.Pow10(i))).String())
		fmt.Fprintf(&c.b, `<line class="grid" x1="%d" x2="%d" y1="%d" y2="%d"/>`, left, left+width, y, y)
	}
	scaled := func(of func(Bin) time.Duration) func(Bin) (float64, bool) {
		return func(b Bin) (float64, bool) {
			return math.Log10(float64(max(of(b), quickest))/float64(quickest)) / decades, b.Answered > 0
		}
	}
	c.line("max", a.Bins, scaled(func(b Bin) time.Duration { return b.Max }))
	c.line("p99", a.Bins, scaled(func(b Bin) time.Duration { return b.P99 }))
	c.line("p50", a.Bins, scaled(func(b Bin) time.Duration { return b.P50 }))
	return c.end()
}

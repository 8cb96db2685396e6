package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The size of a plot and its inner area.
const (
	plotWidth, plotHeight = 760, 420
	plotLeft, plotRight   = 70, 180
	plotTop, plotBottom   = 40, 50
)

// colours of the contenders, in their order.
var colours = []string{"#0b5fa5", "#56b4e9", "#d55e00", "#b07aa1", "#6b6b6b"}

// Series is one line: y at each x.
type Series struct {
	Name   string
	Colour string
	X, Y   []float64
}

// plots draws all, by the names of their files.
func (r *Results) plots() map[string]string {
	all := map[string]string{}
	for _, t := range titles {
		for name, of := range map[string]struct {
			title string
			value func(*Cell) float64
		}{
			"throughput": {"decisions/s against callers", func(c *Cell) float64 { return c.Rate }},
			"p99":        {"p99 in ms against callers", func(c *Cell) float64 { return c.P99 }},
			"cpu":        {"CPU seconds per million decisions, all processes, against callers", func(c *Cell) float64 { return c.ClientCPU + c.ServerCPU }},
		} {
			if lines := r.series(t.kind, of.value); len(lines) > 0 {
				all[fmt.Sprintf("%s-%s.svg", name, t.kind)] = plot(t.title+": "+of.title, lines)
			}
		}
	}
	return all
}

// series takes the points with one decision a call in a closed loop.
func (r *Results) series(kind Kind, value func(*Cell) float64) []Series {
	var lines []Series
	for i, who := range contenders {
		s := Series{Name: who.Title, Colour: colours[i]}
		for _, p := range points {
			if p.Batch > 1 || p.Rate > 0 {
				continue
			}
			if c := cell(r.of(who.Name, kind, p.Name)); c.counts() {
				s.X, s.Y = append(s.X, float64(p.Callers)), append(s.Y, value(&c))
			}
		}
		if len(s.X) > 0 {
			lines = append(lines, s)
		}
	}
	return lines
}

// axis is a logarithmic scale.
type axis struct{ low, high, from, to float64 }

// at is the place of a value.
func (a axis) at(v float64) float64 {
	return a.from + (a.to-a.from)*math.Log(v/a.low)/math.Log(a.high/a.low)
}

// around makes an axis that holds all values, with a margin.
func around(lines []Series, of func(*Series) []float64, from, to float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for i := range lines {
		for _, v := range of(&lines[i]) {
			low, high = min(low, v), max(high, v)
		}
	}
	return axis{low / 1.3, high * 1.3, from, to}
}

// marks are round values within the axis, not more than can be read.
func (a axis) marks() []float64 {
	var all []float64
	steps := []float64{1, 2, 5}
	if a.high/a.low > 1000 {
		steps = steps[:1]
	}
	for e := math.Floor(math.Log10(a.low)); e <= math.Ceil(math.Log10(a.high)); e++ {
		for _, s := range steps {
			if v := s * math.Pow(10, e); v >= a.low && v <= a.high {
				all = append(all, v)
			}
		}
	}
	return all
}

// plot draws lines on two logarithmic axes, with their names at their ends.
func plot(title string, lines []Series) string {
	x := around(lines, func(s *Series) []float64 { return s.X }, plotLeft, plotWidth-plotRight)
	y := around(lines, func(s *Series) []float64 { return s.Y }, plotHeight-plotBottom, plotTop)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/><text x="%d" y="22" font-size="15">%s</text>`+"\n", plotWidth, plotHeight, plotLeft, html.EscapeString(title))
	for _, v := range y.marks() {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			plotLeft, plotWidth-plotRight, y.at(v), plotLeft-6, y.at(v)+4, label(v))
	}
	for _, v := range callersOf(lines) {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1[1]f" y1="%d" y2="%d" stroke="#ddd"/><text x="%.1[1]f" y="%[4]d" text-anchor="middle">%[5]s</text>`+"\n",
			x.at(v), plotTop, plotHeight-plotBottom, plotHeight-plotBottom+18, thousands(v))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">callers</text>`+"\n", (plotLeft+plotWidth-plotRight)/2, plotHeight-12)
	for i := range lines {
		s := &lines[i]
		var path []string
		for k := range s.X {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(s.X[k]), y.at(s.Y[k])))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"/>`+"\n", x.at(s.X[k]), y.at(s.Y[k]), s.Colour)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), s.Colour)
		at := plotTop + 14 + 20*i
		fmt.Fprintf(&b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			plotWidth-plotRight+14, at-10, s.Colour, plotWidth-plotRight+32, at, html.EscapeString(s.Name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// callersOf are all x of all lines, each once.
func callersOf(lines []Series) []float64 {
	var all []float64
	seen := map[float64]bool{}
	for i := range lines {
		for _, v := range lines[i].X {
			if !seen[v] {
				seen[v] = true
				all = append(all, v)
			}
		}
	}
	return all
}

// label writes a round value.
func label(v float64) string {
	if v < 1 {
		return fmt.Sprintf("%g", v)
	}
	return thousands(v)
}

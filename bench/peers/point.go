package main

import (
	"fmt"
	"slices"
	"strings"
)

// Point is one way of asking that is measured.
type Point struct {
	Name    string  `json:"name"`
	Callers int     `json:"callers"`
	Batch   int     `json:"batch"`
	Rate    float64 `json:"rate,omitempty"` // decisions a second of an open loop; 0: closed loop
	Kinds   []Kind  `json:"-"`              // of traffic that it is measured with
}

var (
	admitted = []Kind{Uniform}
	all      = []Kind{Uniform, Zipf, Hot, Abusive}
)

// points are all there are, in the order they are measured and shown.
var points = []Point{
	{Name: "1", Callers: 1, Batch: 1, Kinds: admitted},
	{Name: "16", Callers: 16, Batch: 1, Kinds: admitted},
	{Name: "64", Callers: 64, Batch: 1, Kinds: all},
	{Name: "256", Callers: 256, Batch: 1, Kinds: all},
	{Name: "1024", Callers: 1024, Batch: 1, Kinds: all},
	{Name: "16x100", Callers: 16, Batch: 100, Kinds: all},
	{Name: "16x500", Callers: 16, Batch: 500, Kinds: admitted},
	{Name: "open", Callers: 2048, Batch: 1, Rate: 50_000, Kinds: []Kind{Mixed}},
}

// pointsOf returns the named points, all for an empty list.
func pointsOf(list string) ([]Point, error) {
	if list == "" {
		return points, nil
	}
	var chosen []Point
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(points, func(p Point) bool { return p.Name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("no point %q, there are %s", name, strings.Join(names(points, func(p Point) string { return p.Name }), ", "))
		}
		chosen = append(chosen, points[i])
	}
	return chosen, nil
}

// title is what people read.
func (p *Point) title() string {
	callers := "callers"
	if p.Callers == 1 {
		callers = "caller"
	}
	switch {
	case p.Rate > 0:
		return fmt.Sprintf("open loop, %s/s", thousands(p.Rate))
	case p.Batch > 1:
		return fmt.Sprintf("%s %s × %d per call", thousands(float64(p.Callers)), callers, p.Batch)
	}
	return thousands(float64(p.Callers)) + " " + callers
}

// names maps a list to strings.
func names[T any](list []T, name func(T) string) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = name(list[i])
	}
	return out
}

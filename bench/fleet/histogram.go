package fleet

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Histogram is what a histogram in /metrics has counted: how many values were at most
// each bound, in rising order; the last bound is infinite.
type Histogram []HistogramBin

// HistogramBin counts all values up to its bound.
type HistogramBin struct{ Bound, Count float64 }

// Histogram reads a histogram of the node, summed over its labels; empty if it is not
// there.
func (n *Node) Histogram(ctx context.Context, name string) (Histogram, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("metrics of node %s: %w", n.Name, err)
	}
	defer resp.Body.Close()
	h, err := parseHistogram(resp.Body, name)
	if err != nil {
		return nil, fmt.Errorf("metric %s of node %s: %w", name, n.Name, err)
	}
	return h, nil
}

// parseHistogram picks a histogram out of a page of metrics.
func parseHistogram(page io.Reader, name string) (h Histogram, err error) {
	lines := bufio.NewScanner(page)
	for lines.Scan() {
		labels, ok := strings.CutPrefix(lines.Text(), name+"_bucket{")
		if !ok {
			continue
		}
		_, rest, _ := strings.Cut(labels, `le="`)
		bound, rest, _ := strings.Cut(rest, `"`)
		_, count, _ := strings.Cut(rest, "} ")
		var bin HistogramBin
		if bin.Bound, err = strconv.ParseFloat(bound, 64); err != nil {
			return nil, err
		}
		if bin.Count, err = strconv.ParseFloat(count, 64); err != nil {
			return nil, err
		}
		h = h.add(bin)
	}
	return h, lines.Err()
}

func (h Histogram) add(bin HistogramBin) Histogram {
	i, found := slices.BinarySearchFunc(h, bin, func(a, b HistogramBin) int { return cmp.Compare(a.Bound, b.Bound) })
	if found {
		h[i].Count += bin.Count
		return h
	}
	return slices.Insert(h, i, bin)
}

// Plus adds what another histogram of the same bounds has counted, times sign: 1, or
// -1 for what was counted since.
func (h Histogram) Plus(other Histogram, sign float64) Histogram {
	sum := slices.Clone(h)
	for _, bin := range other {
		sum = sum.add(HistogramBin{bin.Bound, sign * bin.Count})
	}
	return sum
}

// Count is the number of values.
func (h Histogram) Count() float64 {
	if len(h) == 0 {
		return 0
	}
	return h[len(h)-1].Count
}

// Within is the share of values that are at most bound, which should be one of h's; 1
// if there are none.
func (h Histogram) Within(bound float64) float64 {
	if h.Count() == 0 {
		return 1
	}
	within := 0.0
	for _, bin := range h {
		if bin.Bound <= bound {
			within = bin.Count
		}
	}
	return within / h.Count()
}

// Quantile is the bound that a share of all values does not exceed; 0 if there are none.
func (h Histogram) Quantile(share float64) float64 {
	for _, bin := range h {
		if h.Count() > 0 && bin.Count >= share*h.Count() {
			return bin.Bound
		}
	}
	return 0
}

package fleet

import (
	"math"
	"strings"
	"testing"
)

func TestHistogramIsReadFromMetrics(t *testing.T) {
	const page = `# TYPE x_seconds histogram
x_seconds_bucket{group="1",le="0.001"} 3
x_seconds_bucket{group="1",le="0.01"} 8
x_seconds_bucket{group="1",le="+Inf"} 10
x_seconds_sum{group="1"} 1.5
x_seconds_count{group="1"} 10
x_seconds_bucket{group="2",le="0.001"} 7
x_seconds_bucket{group="2",le="0.01"} 10
x_seconds_bucket{group="2",le="+Inf"} 10
xx_seconds_bucket{le="0.001"} 99
`
	h, err := parseHistogram(strings.NewReader(page), "x_seconds")
	if err != nil || h.Count() != 20 || h.Within(0.001) != 0.5 || h.Within(0.01) != 0.9 {
		t.Errorf("%v, %v", h, err)
	}
	if h.Quantile(0.5) != 0.001 || h.Quantile(0.9) != 0.01 || !math.IsInf(h.Quantile(0.99), 1) {
		t.Errorf("quantiles %v, %v, %v", h.Quantile(0.5), h.Quantile(0.9), h.Quantile(0.99))
	}
	if since := h.Plus(h, -1); since.Count() != 0 || since.Within(0.001) != 1 || since.Quantile(0.5) != 0 {
		t.Errorf("of nothing: %v", since)
	}
	if twice := h.Plus(h, 1); twice.Count() != 40 || h.Count() != 20 {
		t.Errorf("added: %v, and %v is left", twice, h)
	}
	if _, err := parseHistogram(strings.NewReader(`x_seconds_bucket{le="much"} 3`), "x_seconds"); err == nil {
		t.Error("a bound that is no number was read")
	}
}

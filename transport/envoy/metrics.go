package envoy

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// outcome is what a descriptor was answered.
type outcome uint8

const (
	ok        outcome = iota
	over              // a limit denies
	opened            // not decided; the failure mode lets it through
	closed            // not decided; the failure mode denies
	shared            // not decided by the cluster; this node's share of the limits admits it
	exhausted         // … or denies it
	none              // not decided, and not answered unless another descriptor was denied
)

var outcomeNames = [...]string{
	ok: "ok", over: "over_limit", opened: "open", closed: "closed", shared: "local", exhausted: "local_over_limit", none: "none",
}

// counts is what a node counts of the service.
type counts struct {
	descriptors [len(outcomeNames)]prometheus.Counter
	vector      *prometheus.CounterVec
	took        prometheus.Histogram
}

func newCounts() *counts {
	c := &counts{vector: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ringlimit_envoy_descriptors_total",
		Help: "Descriptors that Envoy asked this node about, by what they were answered: open, closed and those of local are failure modes, none is no answer.",
	}, []string{"outcome"}), took: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "ringlimit_envoy_answer_seconds",
		Help:    "From reading a request of Envoy to its answer; requests that get none are not in it.",
		Buckets: []float64{.001, .002, .005, .010, .015, .020, .050, .100, .500, 1},
	})}
	for o, name := range outcomeNames {
		c.descriptors[o] = c.vector.WithLabelValues(name)
	}
	return c
}

// answered notes that a request was read at a time and is answered now.
func (c *counts) answered(read time.Time) { c.took.Observe(time.Since(read).Seconds()) }

// Describe and Collect make a server a prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	s.counts.vector.Describe(ch)
	s.counts.took.Describe(ch)
}

// Collect gives the counters of the moment.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	s.counts.vector.Collect(ch)
	s.counts.took.Collect(ch)
}

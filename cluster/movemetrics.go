package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// moveMetrics tell how long slots move, and how long requests wait for them.
type moveMetrics struct {
	parts *prometheus.HistogramVec // by part
	waits prometheus.Histogram
}

// The parts of a move that are timed. Those of the time in which nobody takes for
// the slot are seal to own.
const (
	partCopy   = "copy"   // copying ahead, with the wait for its turn
	partSeal   = "seal"   // from asking for the seal until it is applied
	partRest   = "rest"   // sending what is left
	partFlip   = "flip"   // from asking the control group until it has flipped the move
	partSealed = "sealed" // from the seal to the flip, as the old group's leader sees both
	partOwn    = "own"    // from the flip, as the new group's leader sees it, until that owns the slot
)

var moveBuckets = []float64{.0005, .001, .002, .004, .006, .01, .015, .02, .03, .05, .075, .1, .15, .2, .3, .5, 1, 2, 5, 30}

func newMoveMetrics() *moveMetrics {
	return &moveMetrics{
		parts: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "ringlimit_slot_move_seconds", Help: "How long the parts of a slot's move took, on the node that did them.", Buckets: moveBuckets,
		}, []string{"part"}),
		waits: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "ringlimit_slot_wait_seconds", Help: "How long requests waited on this node because their slot was on its way to another group.", Buckets: moveBuckets,
		}),
	}
}

// took notes how long a part of a move took that began at begun.
func (m *moveMetrics) took(part string, begun time.Time) {
	m.parts.WithLabelValues(part).Observe(time.Since(begun).Seconds())
}

package cluster

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// checkpointCollector turns what this node has written down into metrics.
type checkpointCollector struct{ n *Node }

var (
	checkpointAge      = perGroup("checkpoint_age_seconds", "Since the group's newest checkpoint on this node was, or was found to be, as the replica here.")
	checkpointBytes    = perGroup("checkpoint_bytes", "Size of the group's checkpoint on this node.")
	checkpointFailures = prometheus.NewDesc("ringlimit_checkpoint_failures_total", "Checkpoints that could not be written.", nil, nil)
)

func newSalvaged() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ringlimit_slots_salvaged_total", Help: "Slots that groups led by this node took over in a new epoch, by where from.",
	}, []string{"from"})
}

func (*checkpointCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{checkpointAge, checkpointBytes, checkpointFailures} {
		out <- d
	}
}

func (c *checkpointCollector) Collect(out chan<- prometheus.Metric) {
	k := c.n.checkpoints
	k.mu.Lock()
	defer k.mu.Unlock()
	for group, at := range k.done {
		out <- prometheus.MustNewConstMetric(checkpointAge, prometheus.GaugeValue, time.Since(at).Seconds(), strconv.Itoa(int(group)))
	}
	for group, n := range k.bytes {
		out <- prometheus.MustNewConstMetric(checkpointBytes, prometheus.GaugeValue, float64(n), strconv.Itoa(int(group)))
	}
	out <- prometheus.MustNewConstMetric(checkpointFailures, prometheus.CounterValue, float64(k.failures))
}

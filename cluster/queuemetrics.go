package cluster

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// queueCollector turns what waits for each group, on this node, into metrics.
type queueCollector struct{ n *Node }

var (
	queueWaiting = queueDesc("queue_requests", "Requests on this node that wait for the group's decision, made here or at the node that leads it.")
	queueLimit   = queueDesc("queue_limit", "How many of them may wait before more are refused: what was answered of late in 100 ms, or the most there can be where nothing is refused.")
	queueRefused = queueDesc("queue_refused_total", "Requests refused at once, or for want of room in the group's next entry, because as many waited as could be decided in time.")
)

func queueDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ringlimit_"+name, help, []string{"group"}, nil)
}

func (c *queueCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- queueWaiting
	ch <- queueLimit
	ch <- queueRefused
}

func (c *queueCollector) Collect(ch chan<- prometheus.Metric) {
	v := c.n.view.Load()
	if v == nil {
		return
	}
	for id, q := range v.queues {
		s, label := q.State(), strconv.FormatUint(uint64(id), 10)
		ch <- prometheus.MustNewConstMetric(queueWaiting, prometheus.GaugeValue, float64(s.Waiting), label)
		ch <- prometheus.MustNewConstMetric(queueLimit, prometheus.GaugeValue, float64(s.Limit), label)
		ch <- prometheus.MustNewConstMetric(queueRefused, prometheus.CounterValue, float64(s.Refused), label)
	}
}

package cluster

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringlimit/ringlimit/internal/certs"
)

// secretsCollector tells when certificates expire, and which files could not be taken over.
type secretsCollector struct{ n *Node }

var (
	descNotAfter = prometheus.NewDesc("ringlimit_certificate_not_after_seconds",
		"When a certificate expires, in Unix time: the own one, or the first of the authorities to do so.", []string{"plane", "certificate"}, nil)
	descRefused = prometheus.NewDesc("ringlimit_secrets_refused_total",
		"Changed files of certificates or gossip keys that were bad, so that those read before stay in use.", []string{"plane"}, nil)
)

func (c *secretsCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- descNotAfter
	ch <- descRefused
}

func (c *secretsCollector) Collect(ch chan<- prometheus.Metric) {
	for _, s := range []*certs.Store{c.n.secrets.peers, c.n.secrets.callers} {
		if s == nil {
			continue
		}
		own, authority := s.NotAfter()
		for name, at := range map[string]time.Time{"own": own, "authority": authority} {
			if !at.IsZero() {
				ch <- prometheus.MustNewConstMetric(descNotAfter, prometheus.GaugeValue, float64(at.Unix()), s.Plane(), name)
			}
		}
		ch <- prometheus.MustNewConstMetric(descRefused, prometheus.CounterValue, float64(s.Refused()), s.Plane())
	}
	if k := c.n.secrets.keys; k != nil {
		ch <- prometheus.MustNewConstMetric(descRefused, prometheus.CounterValue, float64(k.Refused()), "gossip")
	}
}

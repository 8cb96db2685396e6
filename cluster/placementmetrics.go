package cluster

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringlimit/ringlimit/control"
)

// placementCollector turns the agreed placement into metrics: the same on every
// node that has heard of it.
type placementCollector struct{ n *Node }

var (
	epochDesc   = perGroup("epoch", "Epoch of the group: it grows when the group is made anew.")
	birthsDesc  = perGroup("slots_to_begin", "Slots that the group's epoch does not hold yet.")
	movesDesc   = prometheus.NewDesc("ringlimit_slot_moves", "Slots on the move, by phase.", []string{"phase"}, nil)
	waitingDesc = prometheus.NewDesc("ringlimit_slot_moves_waiting", "Slots that have yet to move to the group they are wished in.", nil, nil)
	deadDesc    = prometheus.NewDesc("ringlimit_nodes_dead", "Registered nodes that look dead from here.", nil, nil)
	nodesDesc   = prometheus.NewDesc("ringlimit_nodes", "Registered nodes.", nil, nil)
)

func (*placementCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{epochDesc, birthsDesc, movesDesc, waitingDesc, deadDesc, nodesDesc} {
		out <- d
	}
}

func (c *placementCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	s := c.n.control.State()
	for _, g := range s.Groups {
		id := strconv.Itoa(int(g.ID))
		gauge(epochDesc, int(g.Epoch), id)
		gauge(birthsDesc, len(g.Births), id)
	}
	open := make(map[control.MovePhase]int)
	for _, m := range s.Moves {
		open[m.Phase]++
	}
	for _, phase := range []control.MovePhase{control.Copying, control.Flipped, control.Cancelled} {
		gauge(movesDesc, open[phase], phase.String())
	}
	_, waiting := moveStatus(s)
	gauge(waitingDesc, int(waiting))
	gauge(deadDesc, c.n.countDead(s))
	gauge(nodesDesc, len(s.Registered()))
}

// countEpochs counts the new epochs that have come since it was called last. The
// first call counts none: what came before this process is not its to count.
func (n *Node) countEpochs() {
	births := make(map[uint32]uint64)
	for _, g := range n.control.State().Groups {
		births[g.ID] = g.BirthRevision
		if before, known := n.births[g.ID]; known && before != g.BirthRevision {
			n.metrics.epochs.Inc()
			n.log.Warn("group has a new epoch: what it held is gone, as each policy's on_state_loss says",
				"group", g.ID, "epoch", g.Epoch, "because", g.Reason, "slots", len(g.Births))
		}
	}
	n.births = births
}

package main

import "fmt"

// point is a row of the table Load of docs/testing.md: three nodes, three groups.
type point struct {
	callers int
	rate    float64 // decisions/s, all admitted
	cpu     float64 // CPU s per million of all nodes
	quote   string
}

var points = []point{
	{1, 2_091, 610, "| 1 | 2,091 | 0.46 | 0.83 | 117 | 610 |"},
	{16, 9_611, 156, "| 16 | 9,611 | 1.5 | 4.5 | 33 | 156 |"},
	{64, 28_387, 52, "| 64 | 28,387 | 2.1 | 6.0 | 12 | 52 |"},
	{256, 48_801, 30, "| 256 | 48,801 | 4.8 | 12.9 | 8.7 | 30 |"},
	{1024, 87_753, 16, "| 1,024 | 87,753 | 10.5 | 26.7 | 6.4 | 16 |"},
}

// counted is the CPU seconds per million that the arithmetic has for a point.
func (p point) counted(c *constants) float64 {
	x := node{load{Admitted: 1}, defaultShape(), c, 3}
	x.l.Peak = p.rate / 3 / x.part() // so that each group has a third
	return 1e6 * 3 * x.cores(x.whole()) / p.rate
}

// againstTable is what the arithmetic says of loads that were measured.
func againstTable() string {
	c, _ := measuredConstants()
	rows := [][]string{{"callers", "decisions/s", "measured, CPU s per million", "counted", "counted / measured"}}
	for _, p := range points {
		v := p.counted(c)
		rows = append(rows, []string{grouped(p.callers), count(p.rate), fmt.Sprint(p.cpu), fmt.Sprintf("%.0f", v), fmt.Sprintf("%.2f", v/p.cpu)})
	}
	return table(rows)
}

// simulated are the clusters of the page: nodes and slots.
var simulated = [][2]int{{50, 1024}, {50, 16_384}, {200, 1024}, {200, 16_384}}

// simulationTable is what the planner does with them.
func simulationTable(sim simulator) (string, error) {
	rows := [][]string{{"nodes", "slots", "step", "slots of a node", "most / mean", "replicas of a node", "slots moved", "mean of a node", "replicas made", "control commands", "placement changed", "control state"}}
	for _, x := range simulated {
		r, err := sim(x[0], x[1])
		if err != nil {
			return "", err
		}
		for _, s := range r.rows() {
			b := s.balance
			rows = append(rows, []string{
				grouped(b.Nodes), grouped(r.Slots), s.what, fmt.Sprintf("%d … %d", b.MinSlots, b.MaxSlots), fmt.Sprintf("%.2f", b.SlotsToMean),
				fmt.Sprintf("%d … %d", b.MinReplicas, b.MaxReplicas), grouped(b.Moved), fmt.Sprint(b.Mean), fmt.Sprint(b.ReplicaSteps),
				grouped(b.Commands) + ", " + inBytes(float64(b.CommandBytes)), grouped(int(b.Revisions)), inBytes(float64(b.State)),
			})
		}
	}
	return table(rows), nil
}

package main

// The CPU of a commit and of a take is a line through what few and many callers cost,
// less what an idle cluster does: with one caller each take is a commit of its own, with
// 1,024 callers of three groups some 300 share one. What of it the leader does, and what
// each of two followers, was measured for this page.
func cpuSources(c *constants) []source {
	const (
		load = "docs/testing.md"
		one  = "| 1 | 2,091 | 0.46 | 0.83 | 117 | 610 |"
		many = "| 1,024 | 87,753 | 10.5 | 26.7 | 6.4 | 16 |"
		few  = "| 16 | 9,611 | 1.5 | 4.5 | 33 | 156 |"
		here = "docs/capacity.md"
	)
	return []source{
		{
			flag: "commit-cpu", value: set(&c.CommitCPU, 294e-6), kind: measured, what: "CPU s of a commit at its leader",
			from: load + ", Load: 610 µs with one caller, 50 of them idle; the leader does 54 %", file: load, quote: one,
		},
		{
			flag: "follow-cpu", value: set(&c.FollowCPU, 126e-6), kind: measured, what: "CPU s of a commit at each other replica",
			from: "the same: 23 %", file: load, quote: one,
		},
		{
			flag: "take-cpu", value: set(&c.TakeCPU, 6.5e-6), kind: measured, what: "CPU s of an admitted take at the leader",
			from: load + ", Load: 16 µs with 1,024 callers, less idle and commits; the leader does 49 %", file: load, quote: many,
		},
		{
			flag: "copy-cpu", value: set(&c.CopyCPU, 3.4e-6), kind: measured, what: "CPU s of an admitted take at each other replica",
			from: "the same: 26 %", file: load, quote: many,
		},
		{
			flag: "deny-cpu", value: set(&c.DenyCPU, 10e-6), kind: measured, what: "CPU s of a denial, all at the leader",
			from: here + ", Measured for this page", file: here, quote: "| 256, denied |",
		},
		{
			flag: "commit-time", value: set(&c.CommitTime, 1e-3), kind: measured, what: "s of a commit, in which the next gathers",
			from: load + ", Load: what 16 callers cost is that of 4.1 takes to a commit; alone it takes 0.46 ms", file: load, quote: few,
		},
		{
			flag: "group-rate", value: set(&c.GroupRate, 71_505), kind: measured, what: "takes/s that one group commits, single calls",
			from: load + ", Load: one group, 1,024 callers, who shared two cores with all nodes", file: load, quote: "68,078 at 256, 71,505 at 1,024 callers",
		},
		{
			flag: "node-cpu", value: set(&c.NodeCPU, 0.0305), kind: measured, what: "cores of an idle node, without the next line",
			from: load + ", Idle: 3.5 % with 2 others, 4.4 % with 6", file: load, quote: "| 3 | 0 | 3.5 % | 3.7 % | 21.8 | 22.1 | 0.9 |",
		},
		{
			flag: "peer-cpu", value: set(&c.PeerCPU, 0.00225), kind: measured, what: "cores for each other node",
			from: "the same: (4.4 % - 3.5 %) / 4; not measured beyond 7 nodes", file: load, quote: "| 7 | 0 | 4.4 % | 4.8 % | 20.7 | 21.5 | 0.3 |",
		},
	}
}

func set(at *float64, v float64) *float64 {
	*at = v
	return at
}

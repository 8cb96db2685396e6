package main

func changeSources(c *constants) []source {
	return []source{
		{
			flag: "chunk-bytes", value: set(&c.ChunkBytes, 34), kind: code, what: "of a bucket in a slot that moves",
			from: "bucket/chunk.go: a cell", file: "bucket/chunk.go", quote: "cell     key 16 · rule · last 8 · a 4 · b 4",
		},
		{
			flag: "slot-cost", value: set(&c.SlotCost, 512<<10), kind: code, what: "bytes that a slot that moves counts for beside its own",
			from: "cluster: slotCost", file: "cluster/movecopy.go", quote: "slotCost   = 512 << 10",
		},
		{
			flag: "dump-bytes", value: set(&c.DumpBytes, 50.3), kind: code, what: "of a bucket in a snapshot, which has whole segments",
			from: "docs/testing.md, Memory and steps", file: "docs/testing.md", quote: "| live heap per token bucket | 50.3 bytes | 47.0 bytes |",
		},
		{
			flag: "slot-time", value: set(&c.SlotTime, 0.24), kind: measured, what: "s of the move of a slot with little in it, 16 at once",
			from: "docs/testing.md, Faults, grow, before slots were paced: 401 in 6 s, beside the wait", file: "docs/testing.md", quote: "before slots were paced 401 slots took 6 s",
		},
		{
			flag: "moves-at-once", value: set(&c.MovesAtOnce, 16), kind: code, what: "slots that move at once in a cluster",
			from: "control: MaxMoves", file: "control/move.go", quote: "const MaxMoves = 16",
		},
		{
			flag: "hysteresis", value: set(&c.Hysteresis, 10), kind: code, what: "s of the same members before slots move",
			from: "control: Hysteresis", file: "control/look.go", quote: "const Hysteresis = 10 * time.Second",
		},
		{
			flag: "route-slot", value: set(&c.RouteSlot, 2), kind: code, what: "bytes of a slot in what a client is told, with more than 127 groups",
			from: "Routing of the wire contract: a packed varint", file: "api/ringlimit/v1/ringlimit.proto", quote: "repeated uint32 slot_groups = 6;",
		},
		{
			flag: "route-node", value: set(&c.RouteNode, 70), kind: code, what: "of a node with its group and addresses of 22 letters",
			from: "Routing and GroupRoute of the wire contract", file: "api/ringlimit/v1/ringlimit.proto", quote: "repeated GroupRoute groups = 7;",
		},
		{
			flag: "takeover", value: set(&c.Takeover, 0.069), kind: measured, what: "s from a kill to another leader, at worst",
			from: "docs/testing.md, Faults, kill-leader: p50 40 ms", file: "docs/testing.md", quote: "all slots served again: p50 40 ms, max 69 ms",
		},
		{
			flag: "replace-after", value: set(&c.ReplaceTime, 600), kind: code, what: "s until a dead node's replicas are made anew",
			from: "--replace-after", file: "docs/design.md", quote: "A node that is silent for `--replace-after` (ten minutes)",
		},
	}
}

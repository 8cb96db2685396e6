package main

func memorySources(c *constants) []source {
	const here = "docs/capacity.md"
	return []source{
		{
			flag: "bucket-bytes", value: set(&c.BucketBytes, 50.3), kind: measured, what: "live heap of a bucket in a replica",
			from: "docs/testing.md, Memory and steps: at 1 M keys; 47.0 at 10 M", file: "docs/testing.md", quote: "| live heap per token bucket | 50.3 bytes | 47.0 bytes |",
		},
		{
			flag: "entry-bytes", value: set(&c.EntryBytes, 47), kind: measured, what: "memory of a take in the log",
			from: "docs/testing.md, Upkeep: 97 MB for a million one-shot keys, less their buckets", file: "docs/testing.md", quote: "| heap of the three nodes, collected, MB | 6.5, 6.3, 6.5 | 103.5, 103.4, 103.4 |",
		},
		{
			flag: "log-bound", value: set(&c.LogBound, 64<<20), kind: code, what: "bytes that the log of a replica is held to",
			from: "cluster/group: defaultLogBytes", file: "cluster/group/group.go", quote: "const defaultLogBytes = 64 << 20",
		},
		{
			flag: "log-seconds", value: set(&c.LogSeconds, 60), kind: code, what: "s after which an entry is let go",
			from: "docs/design.md, In memory", file: "docs/design.md", quote: "of what is older than a minute",
		},
		{
			flag: "log-held", value: set(&c.LogHeld, 4), kind: code, what: "times its bound that a log takes while a snapshot is under way",
			from: "internal/ringlog: holdBounds", file: "internal/ringlog/hold.go", quote: "const holdBounds = 4",
		},
		{
			flag: "result-bytes", value: set(&c.ResultBytes, 128), kind: code, what: "of the result of an own id",
			from: "bucket/pool.go: a record of 96 bytes, and its place in the index", file: "bucket/pool.go", quote: "recordSize    = 96",
		},
		{
			flag: "result-time", value: set(&c.ResultTime, 120), kind: code, what: "s that it is kept",
			from: "docs/design.md, Charged once", file: "docs/design.md", quote: "is kept for two minutes of slot time",
		},
		{
			flag: "node-bytes", value: set(&c.NodeBytes, 17.1e6), kind: measured, what: "resident memory of an empty node",
			from: "docs/testing.md, Upkeep", file: "docs/testing.md", quote: "| resident memory, MB | 17.1, 15.7, 14.1 | 169, 171, 160 |",
		},
		{
			flag: "heap", value: set(&c.Heap, 2), kind: code, what: "resident memory to live heap",
			from: "Go collects when the heap has doubled (GOGC 100, which rlnode leaves); 1.6 was measured, docs/testing.md, Upkeep", file: "docs/testing.md", quote: "| resident memory, MB | 17.1, 15.7, 14.1 | 169, 171, 160 |",
		},
		{
			flag: "policy-heap", value: set(&c.PolicyHeap, 2.75), kind: measured, what: "live heap for each byte of a policy's file",
			from: here + ", Measured for this page: 233 MB for 84.9 MB; 3.6 with policies of 200 bytes", file: here, quote: "| live heap of a node | +233 MB |",
		},
		{
			flag: "policy-peak", value: set(&c.PolicyPeak, 16.4), kind: measured, what: "resident bytes for each while a whole file is put",
			from: here + ", Measured for this page: up to 1,405 MB for 84.9 MB", file: here, quote: "| resident memory of a node after a second put of the whole file, at most | 1,405 MB |",
		},
	}
}

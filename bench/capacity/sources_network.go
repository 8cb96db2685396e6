package main

// Bytes on the wire were counted by the kernel on the connections of each port: the
// payload of TCP, and 66 bytes of headers for each segment.
func networkSources(c *constants) []source {
	const (
		here = "docs/capacity.md"
		from = here + ", Measured for this page"
		full = "| 256, admitted |"
		one  = "| 1, admitted |"
	)
	return []source{
		{flag: "ask-bytes", value: set(&c.AskBytes, 29), kind: measured, what: "bytes of a take to its leader, with a tenant and nothing else", from: from, file: here, quote: full},
		{flag: "answer-bytes", value: set(&c.AnswerBytes, 43), kind: measured, what: "bytes of an admission", from: from, file: here, quote: full},
		{flag: "denial-bytes", value: set(&c.DenialBytes, 61), kind: measured, what: "bytes of a denial", from: from, file: here, quote: "| 256, denied |"},
		{flag: "call-bytes", value: set(&c.CallBytes, 100), kind: measured, what: "bytes of a message to or from a client beside that", from: from + ": a lonely take has 129", file: here, quote: one},
		{flag: "append-bytes", value: set(&c.AppendBytes, 38), kind: measured, what: "bytes of a take to each other replica", from: from, file: here, quote: full},
		{flag: "round-bytes", value: set(&c.RoundBytes, 107), kind: measured, what: "bytes of a commit to each other replica beside that", from: from + ": half of what a lonely commit has both ways", file: here, quote: one},
		{flag: "ack-bytes", value: set(&c.AckBytes, 107), kind: measured, what: "bytes of its acknowledgement", from: "the same", file: here, quote: one},
		{flag: "ping-bytes", value: set(&c.PingBytes, 257), kind: measured, what: "bytes of a ping of a node with three replicas, beside names", from: from, file: here, quote: "| none |"},
		{
			flag: "ping-name", value: set(&c.PingName, 12), kind: code, what: "bytes in each ping for each node that there is a link with",
			from: "cluster/digest.go: a name of 11 letters and its length", file: "cluster/digest.go", quote: "up       []string // nodes it has a live link with",
		},
		{
			flag: "ping-rate", value: set(&c.PingRate, 20), kind: code, what: "pings a second to each other node",
			from: "transport: pingEvery", file: "transport/transport.go", quote: "pingEvery    = 50 * time.Millisecond",
		},
	}
}

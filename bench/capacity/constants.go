package main

// constants is what the product costs. Each was measured in this repository, is
// read off its code, or is said to be a guess; see sources.
type constants struct {
	CommitCPU   float64 `json:"commit_cpu"`   // CPU seconds of a commit at the leader, however many takes share it
	FollowCPU   float64 `json:"follow_cpu"`   // the same at each other replica
	TakeCPU     float64 `json:"take_cpu"`     // CPU seconds of an admitted take at the leader, from message to answer
	CopyCPU     float64 `json:"copy_cpu"`     // the same at each other replica
	DenyCPU     float64 `json:"deny_cpu"`     // CPU seconds of a denial, all at the leader
	CommitTime  float64 `json:"commit_time"`  // seconds of a commit, in which the takes of the next one gather
	GroupRate   float64 `json:"group_rate"`   // takes a second that one group commits at most: one leader decides in one order
	NodeCPU     float64 `json:"node_cpu"`     // cores of a node that nobody asks anything
	PeerCPU     float64 `json:"peer_cpu"`     // cores more for each other node
	BucketBytes float64 `json:"bucket_bytes"` // live heap of a bucket in a replica
	EntryBytes  float64 `json:"entry_bytes"`  // of a take in the log
	LogBound    float64 `json:"log_bound"`    // bytes that the log of a replica is held to
	LogSeconds  float64 `json:"log_seconds"`  // after which an entry is let go
	LogHeld     float64 `json:"log_held"`     // times that bound while a snapshot is under way
	ResultBytes float64 `json:"result_bytes"` // of the result of an own id
	ResultTime  float64 `json:"result_time"`  // seconds that it is kept
	NodeBytes   float64 `json:"node_bytes"`   // resident memory of an empty node
	Heap        float64 `json:"heap"`         // resident memory to live heap
	PolicyHeap  float64 `json:"policy_heap"`  // bytes of live heap for each byte of a policy's file
	PolicyPeak  float64 `json:"policy_peak"`  // resident bytes for each byte while a whole file is put
	AskBytes    float64 `json:"ask_bytes"`    // on the wire, of a take to its leader
	AnswerBytes float64 `json:"answer_bytes"` // of its answer
	DenialBytes float64 `json:"denial_bytes"` // of a denial
	CallBytes   float64 `json:"call_bytes"`   // of a message to or from a client, beside what it carries
	AppendBytes float64 `json:"append_bytes"` // of a take to each other replica
	RoundBytes  float64 `json:"round_bytes"`  // of a commit to each other replica, beside its takes
	AckBytes    float64 `json:"ack_bytes"`    // back
	PingBytes   float64 `json:"ping_bytes"`   // of a ping with what it tells, beside names
	PingName    float64 `json:"ping_name"`    // in each ping, for each node
	PingRate    float64 `json:"ping_rate"`    // a second to each other node
	SlotCost    float64 `json:"slot_cost"`    // bytes that a slot that moves counts for beside its own
	ChunkBytes  float64 `json:"chunk_bytes"`  // of a bucket in a slot that moves
	DumpBytes   float64 `json:"dump_bytes"`   // of a bucket in a snapshot
	SlotTime    float64 `json:"slot_time"`    // seconds of the move of a slot with next to nothing in it
	MovesAtOnce float64 `json:"moves_at_once"`
	Hysteresis  float64 `json:"hysteresis"`    // seconds of the same members before slots move
	RouteSlot   float64 `json:"route_slot"`    // bytes of a slot in what clients are told, at its most
	RouteNode   float64 `json:"route_node"`    // of a node with its group
	Takeover    float64 `json:"takeover"`      // seconds from a kill to another leader, at its worst
	ReplaceTime float64 `json:"replace_after"` // seconds until a dead node's replicas are made anew
}

// kind is where a constant comes from.
type kind string

const (
	measured kind = "measured"
	code     kind = "code"  // a bound, or a layout, that the code says
	guessed  kind = "guess" // nobody measured it yet
)

// source says where a constant comes from, and by what flag to set another.
type source struct {
	flag  string
	value *float64
	kind  kind
	what  string
	from  string // where it was measured, or stands
	file  string // that holds quote, from the root of the repository; "": none
	quote string
}

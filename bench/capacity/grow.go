package main

import "math"

// change is what a change of the members costs.
type change struct {
	Slots       float64 `json:"slots"`         // that a node more moves
	MoveBytes   float64 `json:"move_bytes"`    // of them
	MoveTime    float64 `json:"move_time"`     // seconds until they are there, with the wait before
	LevelBytes  float64 `json:"level_bytes"`   // of the replicas that it is given after that
	LevelTime   float64 `json:"level_time"`    // seconds
	Routing     float64 `json:"routing"`       // bytes that one client is told at a change of the placement, by each node
	Pushes      float64 `json:"pushes"`        // changes of the placement while the node is added: each source flips its slots apart
	PushRate    float64 `json:"push_rate"`     // bytes a second meanwhile out of each node, to all clients, if it can
	PutBytes    float64 `json:"put_bytes"`     // of a put of all policies, out of the control leader
	PutTime     float64 `json:"put_time"`      // seconds for that at the share of its network that may be used
	Unserved    float64 `json:"unserved"`      // seconds a part of the slots waits when a node dies, at worst
	UnservedOf  float64 `json:"unserved_of"`   // that part
	RestartTime float64 `json:"restart_time"`  // seconds until a node that was started again has its replicas
	CopyBytes   float64 `json:"restart_bytes"` // of them
}

// change of a cluster of these nodes: one node more, one gone, one started again.
func (x node) change() change {
	more := x
	more.n++
	slots := math.Ceil(float64(x.s.Slots) / float64(more.n))
	buckets := x.l.buckets() / float64(more.n)
	// Whichever is slower: the bytes at the rate at which one node takes them in, with
	// what each slot counts beside, or the steps of so many moves.
	move := math.Max((buckets*x.c.ChunkBytes+slots*x.c.SlotCost)/x.s.MoveRate, slots/x.c.MovesAtOnce*x.c.SlotTime)
	replica := more.buckets() * x.c.DumpBytes
	level := more.followed() * replica
	d := change{
		Slots: slots, MoveBytes: buckets * x.c.ChunkBytes, MoveTime: x.c.Hysteresis + move,
		LevelBytes: level, LevelTime: x.c.Hysteresis + level/x.s.CatchRate,
		Routing: x.routing(), Pushes: slots,
		PutBytes: float64(x.n-1) * x.l.Policies * x.l.PolicyBytes, Unserved: x.c.Takeover, UnservedOf: x.part(),
		CopyBytes: (1 + x.followed()) * x.buckets() * x.c.DumpBytes,
	}
	d.PushRate = d.Routing * x.l.Clients * d.Pushes / move
	d.PutTime = d.PutBytes / (x.s.Use * x.s.Network)
	d.RestartTime = d.CopyBytes / x.s.CatchRate
	return d
}

package main

import "math"

// traffic is bytes a second of a node, out and in.
type traffic struct {
	CallersIn  float64 `json:"callers_in"`
	CallersOut float64 `json:"callers_out"`
	NodesIn    float64 `json:"nodes_in"`  // of logs, acknowledgements and pings
	NodesOut   float64 `json:"nodes_out"` // the same
	PingsOut   float64 `json:"pings_out"` // the part of it that grows with the square of the nodes over all
}

func (t traffic) out() float64 { return t.CallersOut + t.NodesOut }
func (t traffic) in() float64  { return t.CallersIn + t.NodesIn }

// traffic of a node with these roles.
func (x node) traffic(r roles) traffic {
	t := x.takes()
	rounds := x.rounds(t)
	appends := t*x.c.AppendBytes + rounds*x.c.RoundBytes // of a group to one replica
	acks := rounds * x.c.AckBytes
	asked := t + x.denials()
	others := float64(x.n - 1)
	pings := others * x.c.PingRate * (x.c.PingBytes + others*x.c.PingName)
	calls := asked / x.l.Gathered * x.c.CallBytes
	return traffic{
		CallersIn:  r.leads * (asked*x.c.AskBytes + calls),
		CallersOut: r.leads * (t*x.c.AnswerBytes + x.denials()*x.c.DenialBytes + calls),
		NodesOut:   r.leads*x.followed()*appends + r.follows*acks + pings,
		NodesIn:    r.leads*x.followed()*acks + r.follows*appends + pings,
		PingsOut:   pings,
	}
}

func (x node) carries(r roles, share float64) bool {
	t := x.traffic(r)
	return math.Max(t.out(), t.in()) <= share*x.s.Network
}

func (x node) fitsNetwork() bool {
	return x.carries(x.whole(), x.s.Use) && x.withOneGone(func(r roles) bool { return x.carries(r, x.s.UseGone) })
}

// routing is the bytes of what a client is told of where to send.
func (x node) routing() float64 {
	return float64(x.s.Slots)*x.c.RouteSlot + float64(x.n)*x.c.RouteNode
}

package main

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// text is an answer as a person reads it.
func (a answer) text() string {
	var w strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&w, format+"\n", args...) }
	l, s := a.Load, a.Shape
	say("load       %s decisions/s at the peak, %s with headroom; %s committed/s", count(l.Peak), count(l.rate()), count(l.commits()))
	say("           %s buckets on day %.0f; %s policies of %s", count(l.buckets()), l.Days, count(l.Policies), inBytes(l.PolicyBytes))
	if a.Clusters == 0 {
		say("needs      more than %d clusters, or one without end: look at -use, -memory and -policies", mostClusters)
		return w.String()
	}
	say("needs      %s of %.0f cores, %s, %s/s: %s binds", a.many(), s.Cores, inBytes(s.Memory), inBytes(s.Network), a.Binds)
	say("           alone, cpu needs %s, memory %s, network %s, one leader a group %s", most(a.ByCPU, s), most(a.ByMemory, s), most(a.ByNetwork, s), most(a.ByGroup, s))
	p, m, t := a.PerNode, a.PerNode.Memory, a.PerNode.Traffic
	say("each node  %d slots, %d at most; %s decisions/s, %s commits/s of %.1f takes", p.Slots, p.MostSlots, count(p.Decisions), count(p.Commits), p.Batch)
	say("  cpu      %.2f cores, %.2f of them for pings; %.2f when it takes over from a dead node", p.Cores, p.Mesh, p.CoresGone)
	say("  memory   %s: buckets %s, log %s, results %s, policies %s, a replica to spare %s, collector %s", inBytes(m.Resident), inBytes(m.Buckets),
		inBytes(m.Log), inBytes(m.Results), inBytes(m.Policies), inBytes(m.Spare), inBytes(m.Heap))
	say("  network  callers in %s/s, out %s/s; nodes in %s/s, out %s/s, of it pings %s/s", inBytes(t.CallersIn), inBytes(t.CallersOut), inBytes(t.NodesIn), inBytes(t.NodesOut), inBytes(t.PingsOut))
	say("  replica  a fresh one is sent a snapshot for %s", p.catchUp())
	say("  sweep    a pass over its buckets takes %s", lasts(p.Sweep))
	c := a.Change
	say("add one    %.0f slots move, %s in %s; then %s of replicas in %s", c.Slots, inBytes(c.MoveBytes), lasts(c.MoveTime), inBytes(c.LevelBytes), lasts(c.LevelTime))
	say("           each client is told %s by each node, up to %.0f times; out of a node up to %s/s to %s clients", inBytes(c.Routing), c.Pushes, inBytes(c.PushRate), count(l.Clients))
	say("lose one   %.1f %% of the slots wait %s", 100*c.UnservedOf, lasts(c.Unserved)+lossNote(s))
	say("restart    %s of replicas, %s", inBytes(c.CopyBytes), lasts(c.RestartTime))
	say("put all    %s out of the control leader, %s", inBytes(c.PutBytes), lasts(c.PutTime))
	return w.String()
}

// catchUp is how long a snapshot takes, beside how long it may.
func (p perNode) catchUp() string {
	text := lasts(p.Arrival) + ", the log waits for " + lasts(p.Reach)
	if p.Arrival >= p.Reach {
		text += ": too late"
	}
	return text
}

func lossNote(s shape) string {
	if s.Replicas < 3 {
		return " if a majority were left; with " + fmt.Sprint(s.Replicas) + " none is, and they wait until the node is back or removed"
	}
	return ", the rest not at all"
}

// many is the nodes in words.
func (a answer) many() string {
	switch a.Clusters {
	case 0:
		return "no number of clusters"
	case 1:
		return fmt.Sprintf("%d nodes", a.Nodes)
	}
	return fmt.Sprintf("%s clusters of %d nodes, %s in all,", grouped(a.Clusters), a.Nodes, grouped(a.Clusters*a.Nodes))
}

func most(n int, s shape) string {
	if n == 0 {
		return fmt.Sprintf("over %d", s.MaxNodes)
	}
	return fmt.Sprint(n)
}

// count is a number with three digits that count.
func count(v float64) string {
	switch {
	case v >= 1e12:
		return digits(v/1e12) + " T"
	case v >= 1e9:
		return digits(v/1e9) + " G"
	case v >= 1e6:
		return digits(v/1e6) + " M"
	}
	return grouped(int(math.Round(v)))
}

func inBytes(v float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if v >= u.size {
			return digits(v/u.size) + " " + u.name
		}
	}
	return fmt.Sprintf("%.0f B", v)
}

func digits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func grouped(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// lasts is a time of so many seconds.
func lasts(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= 10*time.Minute:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	case d >= 10*time.Second:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}

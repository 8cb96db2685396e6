package main

import "fmt"

// example is a load on a kind of node, as the page shows it.
type example struct {
	name string
	answer
}

// examples are the worked ones of the page: the load as it is and as it grows, with
// two and three replicas; ten times that and a thousand times, on larger nodes too.
func examples() []example {
	c, _ := measuredConstants()
	var out []example
	add := func(name string, l load, change func(*shape)) {
		s := defaultShape()
		if change != nil {
			change(&s)
		}
		out = append(out, example{name, size(l, s, c)})
	}
	on := func(days float64) load {
		l := defaultLoad()
		l.Days = days
		return l
	}
	two := func(s *shape) { s.Replicas, s.Survive = 2, false }
	large := func(s *shape) { s.Cores, s.Memory, s.Network = 32, 256e9, 25e9/8 }
	huge := func(s *shape) { s.Cores, s.Memory, s.Network, s.Slots = 64, 1024e9, 100e9/8, 16_384 }
	for _, days := range []float64{0, 7, 30, 60} {
		add(fmt.Sprintf("day %.0f", days), on(days), nil)
	}
	add("day 0, two replicas", on(0), two)
	add("day 30, two replicas", on(30), two)
	add("day 30, 256 GB nodes", on(30), large)
	add("10 ×, day 0", on(0).times(10), nil)
	add("10 ×, day 30", on(30).times(10), nil)
	add("10 ×, day 30, 256 GB nodes", on(30).times(10), large)
	add("1,000 ×, day 0, 256 GB nodes", on(0).times(1000), large)
	add("1,000 ×, day 0, 1 TB nodes", on(0).times(1000), huge)
	add("1,000 ×, day 30, 1 TB nodes", on(30).times(1000), huge)
	return out
}

// nodeTable says what each example needs, and how full a node is.
func nodeTable(all []example) string {
	rows := [][]string{{"load", "decisions/s to fit", "buckets", "replicas", "nodes", "binds", "by cpu", "by memory", "by network", "by leader", "slots a node", "cores, one gone", "memory", "network in, out"}}
	for _, e := range all {
		p, t := e.PerNode, e.PerNode.Traffic
		rows = append(rows, []string{
			e.name, count(e.Load.rate()), count(e.Load.buckets()), fmt.Sprint(e.Shape.Replicas), e.inAll(), e.Binds,
			most(e.ByCPU, e.Shape), most(e.ByMemory, e.Shape), most(e.ByNetwork, e.Shape), most(e.ByGroup, e.Shape),
			fmt.Sprintf("%d, %d at most", p.Slots, p.MostSlots), fmt.Sprintf("%.2f, %.2f", p.Cores, p.CoresGone),
			inBytes(p.Memory.Resident), fmt.Sprintf("%s/s, %s/s", inBytes(t.in()), inBytes(t.out())),
		})
	}
	return table(rows)
}

// inAll is the nodes of an example, short.
func (a answer) inAll() string {
	if a.Clusters > 1 {
		return fmt.Sprintf("%s × %d", grouped(a.Clusters), a.Nodes)
	}
	return fmt.Sprint(a.Nodes)
}

// changeTable says what changes of the members cost each example.
func changeTable(all []example) string {
	rows := [][]string{{"load", "a node more: slots", "moved", "in", "then replicas", "in", "routing, one client, of each node", "up to, out of a node", "a node dies: waits", "it is back: copied", "in", "one snapshot", "put of all policies"}}
	for _, e := range all {
		c := e.Change
		rows = append(rows, []string{
			e.name, fmt.Sprintf("%.0f", c.Slots), inBytes(c.MoveBytes), lasts(c.MoveTime), inBytes(c.LevelBytes), lasts(c.LevelTime),
			inBytes(c.Routing), inBytes(c.PushRate) + "/s", unserved(e.answer), inBytes(c.CopyBytes), lasts(c.RestartTime), e.PerNode.catchUp(), inBytes(c.PutBytes) + ", " + lasts(c.PutTime),
		})
	}
	return table(rows)
}

func unserved(a answer) string {
	part := fmt.Sprintf("%.1f %% of slots, ", 100*a.Change.UnservedOf)
	if a.Shape.Replicas < 3 {
		return part + "until it is back"
	}
	return part + lasts(a.Change.Unserved)
}

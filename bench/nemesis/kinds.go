package nemesis

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kinds are all faults there are.
var Kinds = []Kind{
	{Name: "kill", Does: "kill -9 of a random node, started again after 0–10 s, again and again", New: killer(anyNode)},
	{Name: "kill-leader", Does: "the same with the node that leads most groups", New: killer(mostLeading)},
	{Name: "kill-turn", Does: "kill -9 and instant restart of each node in turn, whole in between", New: killer(inTurn)},
	{Name: "kill-two", Does: "kill -9 of two nodes within 50 ms", Loses: true, New: func(w *World) Nemesis { return &wipe{whole: whole{w}, nodes: 2} }},
	{Name: "kill-all", Does: "kill -9 of all nodes", Loses: true, New: func(w *World) Nemesis { return &wipe{whole: whole{w}, nodes: -1} }},
	{Name: "drain", Does: "SIGTERM of one node under load, and restart", New: func(w *World) Nemesis { return &restart{whole: whole{w}} }},
	{Name: "pause", Does: "SIGSTOP of the leader of most groups for 0.2–30 s, again and again", New: func(w *World) Nemesis { return &pause{whole: whole{w}} }},
	{Name: "dead", Does: "kill -9 of the leader of most groups, and nothing more", Stays: true, New: func(w *World) Nemesis { return &dead{whole: whole{w}} }},
	{Name: "stopped", Does: "SIGSTOP of the leader of most groups, and nothing more", Stays: true, New: func(w *World) Nemesis { return &stopped{whole: whole{w}} }},
	{Name: "isolate", Does: "one node cut off from all others", Needs: Cuts, Stays: true, New: cutter(isolate)},
	{Name: "split", Does: "minority and majority cut apart", Needs: Cuts, Nodes: 5, New: cutter(split)},
	{Name: "bridge", Does: "two halves that only one node connects", Needs: Cuts, New: cutter(bridge)},
	{Name: "one-way", Does: "one node hears the others, and is not heard", Needs: Cuts, Stays: true, New: cutter(oneWay)},
	{Name: "pair", Does: "two nodes cut off from each other", Needs: Cuts, Stays: true, New: cutter(onePair)},
	{Name: "peer-plane", Does: "one node cut off on the peer plane, while gossip goes on", Needs: Cuts, Stays: true, New: cutter(peerOnly)},
	{Name: "gossip-plane", Does: "one node cut off from gossip, while raft goes on", Needs: Cuts, Stays: true, New: cutter(gossipOnly)},
	{Name: "loss", Does: "1–50 % of packets around one node or everywhere lost", Needs: Namespaces, Instead: "delay", New: func(w *World) Nemesis { return &loss{whole: whole{w}} }},
	{Name: "flap", Does: "the link of one node down and up every 0.3–3 s", Needs: Namespaces, New: func(w *World) Nemesis { return &flap{whole: whole{w}} }},
	{Name: "delay", Does: "links slow, with jitter: up to 200 ms, gossip out of order", Needs: Relays, New: func(w *World) Nemesis { return &delay{whole: whole{w}} }},
	{Name: "duplicate", Does: "messages between nodes twice, and again up to 3 s later", Needs: Relays, New: func(w *World) Nemesis { return &duplicate{whole: whole{w}} }},
	{Name: "starve", Does: "one node with 5–20 % of a processor", Needs: Processor, New: func(w *World) Nemesis { return &starve{whole: whole{w}} }},
	{Name: "disk-full", Does: "no room for the control log of one node", Needs: Disk, Stays: true, New: func(w *World) Nemesis { return &diskFull{whole: whole{w}} }},
	{Name: "clock-offset", Does: "one node with clocks hours or days ahead, by a time namespace", Needs: TimeSpace, New: func(w *World) Nemesis { return &offset{whole: whole{w}} }},
	{Name: "clock-rate", Does: "group time of leaders at 0.5 to 1.5 times its rate", Needs: Clock, Bends: true, New: func(w *World) Nemesis { return &rate{whole: whole{w}} }},
	{Name: "clock-jump", Does: "group time of a leader 10 s ahead at once", Needs: Clock, Bends: true, New: func(w *World) Nemesis { return &jump{whole: whole{w}} }},
	{Name: "clock-freeze", Does: "group time of a leader standing still for 5 s", Needs: Clock, Bends: true, New: func(w *World) Nemesis { return &freeze{whole: whole{w}} }},
	{Name: "churn", Does: "a node joins, another is drained or killed and removed", New: func(w *World) Nemesis { return &churn{whole: whole{w}} }},
}

// The clocks' errors, which checkers allow for.
const (
	FastestClock = 0.5 // more than the machine's
	JumpAhead    = 10 * time.Second
	FrozenFor    = 5 * time.Second
)

// Find returns the kinds of these names; all: every one.
func Find(names []string) ([]Kind, error) {
	var found []Kind
	for _, name := range names {
		if name == "all" {
			found = append(found, Kinds...)
			continue
		}
		i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no nemesis %q; there are: all, %s", name, strings.Join(Names(), ", "))
		}
		found = append(found, Kinds[i])
	}
	return found, nil
}

// Names are those of all kinds.
func Names() (names []string) {
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return names
}

// Usage lists the kinds for a person.
func Usage() string {
	var b strings.Builder
	for _, k := range Kinds {
		fmt.Fprintf(&b, "  %-16s %s\n", k.Name, k.Does)
	}
	return b.String()
}

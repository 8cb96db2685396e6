package control

import (
	"strconv"
	"strings"
)

// command reads a line that is a command.
func (s *script) command(words []string) Command {
	option := func(name string, or int) int {
		for _, w := range words {
			if v, ok := strings.CutPrefix(w, name+"="); ok {
				n, err := strconv.Atoi(v)
				if err != nil {
					s.t.Fatal(err)
				}
				return n
			}
		}
		return or
	}
	number := func(i int) uint64 {
		n, err := strconv.ParseUint(words[i], 10, 64)
		if err != nil {
			s.t.Fatalf("%v: %v", words, err)
		}
		return n
	}
	group := func() (uint32, uint32) { return uint32(number(1)), uint32(number(2)) }
	switch words[0] {
	case "found":
		c := founding()
		c.Slots, c.Groups, c.Expect = option("slots", 16), option("groups", 0), option("expect", 3)
		return c
	case "late":
		return Register{Node: Node{
			Name: words[1], Directory: "d-" + words[1], Incarnation: words[1] + words[2], GRPC: words[1] + ":1", FormatMax: FormatMax,
		}}
	case "drain":
		return Drain{words[1]}
	case "undrain":
		return Undrain{words[1]}
	case "left":
		return Left{words[1]}
	case "replication":
		return SetReplication{int(number(1))}
	case "group":
		return AddGroup{words[1], words[1:]}
	case "add":
		g, e := group()
		return AddReplica{g, e, words[3]}
	case "drop":
		g, e := group()
		return DropReplica{g, e, number(3)}
	case "dissolve":
		g, e := group()
		return Dissolve{g, e}
	case "epoch":
		g, e := group()
		c := NewEpoch{Group: g, Epoch: e}
		for _, w := range words[3:] {
			if of, ok := strings.CutPrefix(w, "of="); ok {
				for _, serial := range strings.Split(of, ",") {
					n, _ := strconv.ParseUint(serial, 10, 64)
					c.Configuration = append(c.Configuration, n)
				}
			} else {
				c.Nodes = append(c.Nodes, w)
			}
		}
		return c
	case "start_moves":
		var c StartMoves
		for _, p := range pairs(words[1:]) {
			c.Moves = append(c.Moves, Start{uint16(p[0]), uint32(p[1])})
		}
		return c
	case "flip":
		g, e := group()
		return Flip{g, e, moveIDs(words[3:])}
	case "cancel":
		return CancelMoves{Moves: moveIDs(words[1:])}
	case "settled":
		g, e := group()
		return Settled{g, e, moveIDs(words[3:])}
	case "born":
		g, e := group()
		c := Born{Group: g, Epoch: e}
		for _, p := range pairs(words[3:]) {
			c.Slots = append(c.Slots, uint16(p[0]))
		}
		return c
	case "remove":
		return Remove{words[1]}
	case "place":
		return Place{}
	case "form":
		g, e := group()
		return Form{g, e}
	case "reform":
		g, e := group()
		return Reform{g, e}
	case "replace":
		g, e := group()
		return Replace{g, e, number(3), words[4]}
	case "promoted":
		g, e := group()
		return Promoted{g, e, number(3)}
	case "dropped":
		g, e := group()
		return Dropped{g, e, number(3)}
	case "revert":
		g, e := group()
		return Revert{g, e, number(3), number(4)}
	case "miss":
		g, e := group()
		return Miss{g, e, number(3)}
	}
	s.t.Fatalf("unknown line %v", words)
	return nil
}

// pairs reads words such as 3:7; one without a colon has 0 as its second number.
func pairs(words []string) (out [][2]uint64) {
	for _, w := range words {
		a, b, _ := strings.Cut(w, ":")
		first, _ := strconv.ParseUint(a, 10, 64)
		second, _ := strconv.ParseUint(b, 10, 64)
		out = append(out, [2]uint64{first, second})
	}
	return out
}

func moveIDs(words []string) (ids []MoveID) {
	for _, p := range pairs(words) {
		ids = append(ids, MoveID{uint16(p[0]), p[1]})
	}
	return ids
}

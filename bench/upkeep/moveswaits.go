package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// window is a part of a load's time.
type window struct {
	what     string
	from, to time.Duration
}

// has says whether a request was due in w.
func (w window) has(r record) bool { return w.from <= r.due && r.due <= w.to }

// show prints what all callers waited in each window, and in those in which slots
// moved what those waited whose slot moved under them. One node more costs a machine
// that all share something by itself, hence before and after.
func (b *bench) show(all []record, large uint16, before, after window, during ...window) {
	was, is := latencies(all, before), latencies(all, after)
	b.say("  %s: all %d callers %s", before.what, len(was), spread(was))
	b.say("  %s: all %d callers %s", after.what, len(is), spread(is))
	for _, w := range during {
		d := latencies(all, w)
		ratio := func(base []time.Duration) float64 { return float64(at(d, 0.99)) / float64(max(at(base, 0.99), 1)) }
		b.say("  %s: all %d callers %s; p99 is %.2f times that of three nodes at rest, %.2f times that of four", w.what, len(d), spread(d), ratio(was), ratio(is))
		waits, slots := movedUnder(all, func(r record) bool { return r.slot != large })
		b.say("  %s: %d callers of %d moving slots waited %s", w.what, len(in(waits, w)), countIn(slots, w), spread(durations(in(waits, w))))
		waits, slots = movedUnder(all, func(r record) bool { return r.slot == large })
		b.say("  %s: %d callers of the large slot, which moved %d times, waited %s", w.what, len(in(waits, w)), countIn(slots, w), spread(durations(in(waits, w))))
	}
}

// wait is of a caller whose slot moved while its request was under way.
type wait struct {
	call, took time.Duration
}

// movedUnder finds who was under way when its slot changed its group, among records
// that satisfy which: what they asked for was then decided by the new group. moves
// are when the first answers of new groups came.
func movedUnder(all []record, which func(record) bool) (waits []wait, moves []time.Duration) {
	bySlot := make(map[uint16][]record)
	for _, r := range all {
		if which(r) {
			bySlot[r.slot] = append(bySlot[r.slot], r)
		}
	}
	for _, list := range bySlot {
		// Slot time runs on through a move, so it tells the true order.
		slices.SortFunc(list, func(a, b record) int { return cmp.Compare(a.slotTime, b.slotTime) })
		for i := 1; i < len(list); i++ {
			if list[i].group == list[i-1].group {
				continue
			}
			first := slices.MinFunc(run(list[i:]), func(a, b record) int { return cmp.Compare(a.at, b.at) }).at
			moves = append(moves, first)
			for _, r := range run(list[i:]) {
				if r.call <= first {
					waits = append(waits, wait{r.call, r.at - r.call})
				}
			}
		}
	}
	return waits, moves
}

// run is the part of list from its begin that one group decided.
func run(list []record) []record {
	n := slices.IndexFunc(list, func(r record) bool { return r.group != list[0].group })
	if n < 0 {
		n = len(list)
	}
	return list[:n]
}

func in(waits []wait, w window) []wait {
	return slices.DeleteFunc(slices.Clone(waits), func(x wait) bool { return x.call < w.from || x.call > w.to })
}

func countIn(moves []time.Duration, w window) (n int) {
	for _, m := range moves {
		if w.from <= m && m <= w.to+time.Second {
			n++
		}
	}
	return n
}

func durations(waits []wait) []time.Duration {
	var d []time.Duration
	for _, w := range waits {
		d = append(d, w.took)
	}
	slices.Sort(d)
	return d
}

// latencies are those of the requests due in a window, sorted.
func latencies(all []record, w window) []time.Duration {
	var d []time.Duration
	for _, r := range all {
		if w.has(r) {
			d = append(d, r.at-r.due)
		}
	}
	slices.Sort(d)
	return d
}

// at is a quantile of sorted times, 0 of none.
func at(d []time.Duration, q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return d[int(q*float64(len(d)-1))]
}

// showParts prints what the nodes that still run counted of the parts of moves.
func (b *bench) showParts(ctx context.Context, gone *fleet.Node) {
	for _, part := range []string{"copy", "seal", "rest", "flip", "sealed", "own"} {
		sum, count := 0.0, 0.0
		for _, n := range b.fleet.Nodes {
			if n == gone {
				continue
			}
			_ = get(ctx, "http://"+n.HTTP+"/metrics", func(line string) {
				var v float64
				series, value, _ := strings.Cut(line, " ")
				if !strings.Contains(series, `part="`+part+`"`) {
					return
				}
				_, _ = fmt.Sscan(value, &v)
				switch {
				case strings.HasPrefix(series, "ringlimit_slot_move_seconds_sum"):
					sum += v
				case strings.HasPrefix(series, "ringlimit_slot_move_seconds_count"):
					count += v
				}
			})
		}
		b.say("  %-6s of a move, as nodes that are left counted: %4.0f times, mean %.1f ms", part, count, 1e3*sum/max(count, 1))
	}
}

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/control"
)

// moveStatus lists the open moves, and counts the slots that have yet to begin one.
func moveStatus(s *control.State) (moves []*pb.MoveStatus, waiting uint32) {
	for _, m := range s.Moves {
		moves = append(moves, &pb.MoveStatus{
			Slot: uint32(m.Slot), Revision: m.Revision, From: m.From, To: m.To, Phase: m.Phase.String(),
			FromSettled: m.FromSettled, ToSettled: m.ToSettled,
		})
	}
	if s.Wish == nil {
		return moves, 0
	}
	for slot, to := range s.Wish.Slots {
		if _, open := s.Move(uint16(slot)); !open && s.SlotGroup[slot] != to {
			waiting++
		}
	}
	return moves, waiting
}

// countDead counts the registered nodes that look dead from here.
func (n *Node) countDead(s *control.State) int {
	dead := 0
	for _, node := range s.Nodes {
		if !node.Removed && !n.looksAlive(s, node) && !n.follows(node) {
			dead++
		}
	}
	return dead
}

// placementProblems says what keeps the placement from being the wished one.
func placementProblems(s *control.State, r *pb.StatusResponse) []string {
	var problems []string
	if n := len(r.Moves); n > 0 || r.MovesWaiting > 0 {
		problems = append(problems, fmt.Sprintf("%d slots are on the move, %d wait for theirs", n, r.MovesWaiting))
	}
	if why := unsettled(s); why != "" {
		problems = append(problems, why)
	}
	return problems
}

// unsettled says which change of the placement has yet to be planned, empty if
// none: a member that shall own slots and has no group that is wished for, a group
// that nobody needs any more, or replicas that are to be levelled.
func unsettled(s *control.State) string {
	if !s.Placed() {
		return ""
	}
	owners := make(map[string]bool) // that shall own slots, and whether they have a group for them
	for _, name := range s.Owners() {
		owners[name] = false
	}
	var spare []string
	for _, g := range s.Groups {
		given, shall := owners[g.Owner]
		switch kept := s.Wish == nil && !g.Added || s.Wish != nil && s.Wish.Keeps(g.ID); {
		case kept && shall && !given:
			owners[g.Owner] = true
		case kept || !shall || !g.Added:
			spare = append(spare, fmt.Sprint(g.ID))
		}
	}
	var waiting []string
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		if !owners[name] {
			waiting = append(waiting, name)
		}
	}
	switch {
	case len(waiting) > 0:
		return "slots are still to be given to " + strings.Join(waiting, ", ")
	case len(spare) > 0:
		return "to be dissolved: group " + strings.Join(spare, ", ")
	}
	if uneven := s.Unlevel(); uneven != "" {
		return "replicas are still to be levelled: " + uneven
	}
	return ""
}

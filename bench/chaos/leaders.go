package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// returnIn is how long the leadership of all groups may take to be back with their
// owners when nothing is wrong: 10 s of good pings, more after each loss.
const returnIn = 90 * time.Second

// ledByOwners waits until each group is led by its owner, so that what changes
// later has another reason than that.
func (a *arena) ledByOwners(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, returnIn)
	defer cancel()
	for {
		l, err := a.layout(limit)
		if err == nil && len(l.owners) > 0 && sameLeaders(l) {
			return nil
		}
		if pause(limit, 200*time.Millisecond) != nil {
			late := fmt.Errorf("groups of %v are led by %v after %v", l.owners, l.leaders, returnIn)
			return errors.Join(late, err)
		}
	}
}

// leaderInTurn returns the node that leads the group of a round: each group in turn.
func (a *arena) leaderInTurn(ctx context.Context, round int) (*fleet.Node, error) {
	l, err := a.layout(ctx)
	if err != nil {
		return nil, err
	}
	groups := slices.Sorted(maps.Keys(l.leaders))
	if len(groups) == 0 {
		return nil, errors.New("no group yet")
	}
	return a.fleet.Leader(ctx, groups[round%len(groups)])
}

func sameLeaders(l layout) bool {
	for id, owner := range l.owners {
		if l.leaders[id] != owner {
			return false
		}
	}
	return true
}

// change is a change of a group's leader.
type change struct {
	at    time.Duration // since the arena began: the new leader's first answer
	group uint32
}

// changesOfLeader returns when each term of a group after the one it was in was first
// seen in an answer, in order. Only leaders answer, so each is a change of leader.
func changesOfLeader(before map[uint32]uint64, recs []record) (changes []change) {
	type term struct {
		group uint32
		term  uint64
	}
	seen := map[term]time.Duration{}
	for _, r := range recs {
		if r.err != nil || r.ans.Uncommitted || r.ans.Index == 0 || r.ans.Term <= before[r.ans.Group] {
			continue
		}
		key := term{r.ans.Group, r.ans.Term}
		if first, known := seen[key]; !known || r.ret < first {
			seen[key] = r.ret
		}
	}
	for t, at := range seen {
		changes = append(changes, change{at, t.group})
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return changes
}

// mostWithin is the largest number of changes, in order, that any span of so long holds.
func mostWithin(changes []change, span time.Duration) (most int) {
	for i, from := range changes {
		n := 0
		for _, c := range changes[i:] {
			if c.at-from.at < span {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

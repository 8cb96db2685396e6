package cluster

import (
	"testing"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
)

// TestWitnessNamesThePlaceInTheEntry: of a call of which some requests were denied
// from the applied state, the others stand in the entry one after the other.
func TestWitnessNamesThePlaceInTheEntry(t *testing.T) {
	o := &group.Outcome{
		Results:     bucket.Results{Items: []bucket.Result{{SlotTime: 5}, {SlotTime: 4}, {SlotTime: 3, Code: bucket.Repeated}, {SlotTime: 2, Count: 1}}, Answers: []bucket.Answer{{Reason: bucket.ReasonRefunded}}},
		Uncommitted: []bool{false, true, false, false}, Index: 9, Applied: 7, First: 10, Term: 2,
	}
	for k, want := range []struct {
		index    uint64
		position uint32
		at       int64
		repeated bool
	}{{9, 11, 5, false}, {7, 0, 4, false}, {9, 12, 3, true}, {9, 13, 2, true}} {
		w := witness(o, k, 6, 1)
		if w.Index != want.index || w.Position != want.position || w.SlotTimeNs != want.at || w.Repeated != want.repeated || w.Uncommitted != o.Uncommitted[k] || w.Group != 6 || w.Epoch != 1 || w.Term != 2 {
			t.Errorf("request %d: %v", k, w)
		}
	}
}

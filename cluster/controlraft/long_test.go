package controlraft

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/policy"
)

// long is a put that is packed.
func long(amount uint64) control.PutPolicies {
	set := &policy.Set{Home: []string{"tenant"}, Omitted: []string{"home"}}
	for i := range 3000 {
		set.Policies = append(set.Policies, &policy.Policy{
			ID: fmt.Sprintf("p%06d", i), Scope: []string{"tenant"},
			Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: amount, Burst: amount, Window: 1_000_000_000},
		})
	}
	return control.PutPolicies{Set: set, By: control.Author{Who: "test"}}
}

// TestLongCommandsOfOtherNodesAreReadOnce: what the leader has read from another
// node makes the state that a replay of the log makes.
func TestLongCommandsOfOtherNodesAreReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g, stop := open(t, dir)
		if err := g.Bootstrap(); err != nil {
			t.Fatal(err)
		}
		lead(t, g)
		if err := g.Propose(t.Context(), found()); err != nil {
			t.Fatal(err)
		}
		entry := control.Encode(long(7))
		if control.EntryFormat(entry) != 3 {
			t.Fatal("it is not packed")
		}
		if _, err := g.ProposeRead(t.Context(), entry[:len(entry)-1]); !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("a torn entry: %v", err)
		}
		if _, err := g.ProposeRead(t.Context(), entry); err != nil {
			t.Fatal(err)
		}
		if _, err := g.ProposeRead(t.Context(), control.Encode(long(8))); err != nil {
			t.Fatal(err)
		}
		want := g.State().Snapshot()
		if s := g.State(); len(s.Policies.Policies) != 3000 || s.Policies.Policies[5].Limit.Amount != 8 || s.PolicyVersion != 2 {
			t.Errorf("%d policies at version %d", len(s.Policies.Policies), s.PolicyVersion)
		}
		stop()
		g, stop = open(t, dir)
		defer stop()
		lead(t, g)
		if got := g.State().Snapshot(); !bytes.Equal(got, want) {
			t.Error("a replay of the log makes another state")
		}
	})
}

// TestPackedCommandsWaitForOldNodes: a node that does not read them would stand still.
func TestPackedCommandsWaitForOldNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, stop := open(t, "")
		defer stop()
		if err := g.Bootstrap(); err != nil {
			t.Fatal(err)
		}
		lead(t, g)
		old := control.Register{Node: control.Node{Name: "old", Directory: "d", Incarnation: "i", GRPC: "h:1", Peer: "h:2", Gossip: "h:3", FormatMax: 2}}
		for _, c := range []control.Command{found(), old} {
			if err := g.Propose(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Propose(t.Context(), long(7)); !errors.Is(err, fault.Conflict) {
			t.Errorf("got %v, want a conflict that names the node", err)
		}
		short := long(7)
		short.Set.Policies = short.Set.Policies[:10]
		if err := g.Propose(t.Context(), short); err != nil {
			t.Errorf("a short one: %v", err)
		}
	})
}

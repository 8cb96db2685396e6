package control

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringlimit/ringlimit/api/fault"
)

func TestRefoundedClusterGoesOnWithWhatItHad(t *testing.T) {
	index := uint64(0)
	apply := func(m *Machine, c Command) error {
		t.Helper()
		index++
		r, err := m.Apply(index, Encode(c))
		if err != nil {
			t.Fatal(err)
		}
		return r.Err
	}
	must := func(m *Machine, c Command) {
		t.Helper()
		if err := apply(m, c); err != nil {
			t.Fatalf("%T: %v", c, err)
		}
	}
	restored, _, _ := former(t, "format-2", 2)
	old := restored
	content := old.State().Content()
	if content.Epoch == 0 {
		content.Epoch = 1
	}

	m := New()
	must(m, Refound{ClusterID: "new", Backup: "b1", Expect: 1, Voters: 1, Content: content})
	if err := apply(m, Refound{ClusterID: "other", Backup: "b1", Expect: 1, Voters: 1, Content: content}); !errors.Is(err, fault.Conflict) {
		t.Errorf("founded twice: %v", err)
	}
	must(m, Register{Node: Node{Name: "n", Directory: "d", Incarnation: "i", GRPC: "h:1", Peer: "h:2", Gossip: "h:3", FormatMax: FormatMax}})
	must(m, Place{})
	s := m.State()
	if d := cmp.Diff(content.Policies.Encode(), s.Policies.Encode()); d != "" || s.PolicyVersion != content.PolicyVersion || len(s.Audit) != len(content.Audit) {
		t.Errorf("policies of version %d, %d lines of audit: %s", s.PolicyVersion, len(s.Audit), d)
	}
	g := s.Groups[0]
	if g.Epoch != content.Epoch+1 || len(g.Restoring) != s.Slots || len(g.Births) != s.Slots || s.Restoring() != s.Slots || len(s.Initial(g)) > 0 {
		t.Errorf("group %+v", g)
	}
	again := New()
	if err := again.Restore(m.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, again.State()); d != "" {
		t.Errorf("snapshot: %s", d)
	}
	must(m, Form{Group: g.ID, Epoch: g.Epoch})
	must(m, Born{Group: g.ID, Epoch: g.Epoch, Slots: g.Births[:1]})
	if n := m.State().Restoring(); n != s.Slots-1 {
		t.Errorf("%d slots wait", n)
	}
	// The next process of the only node's directory: what the group served is lost, and
	// only what has not begun may still come from the backup.
	must(m, Register{Node: Node{Name: "n", Directory: "d", Incarnation: "j", GRPC: "h:1", Peer: "h:2", Gossip: "h:3", FormatMax: FormatMax}})
	must(m, NewEpoch{Group: g.ID, Epoch: g.Epoch, Nodes: []string{"n"}, Reason: "lost"})
	g = m.State().Groups[0]
	if len(g.Births) != s.Slots || len(g.Restoring) != s.Slots-1 || slices.Contains(g.Restoring, s.Groups[0].Births[0]) {
		t.Errorf("%d births, %d of them from the backup", len(g.Births), len(g.Restoring))
	}
	must(m, Born{Group: g.ID, Epoch: g.Epoch, Slots: g.Births})
	if g := m.State().Groups[0]; g.Restoring != nil || m.State().Restoring() != 0 {
		t.Errorf("restored: %+v", g)
	}
	if c := m.State().Content(); c.Epoch != content.Epoch+2 {
		t.Errorf("epoch %d in a backup of it", c.Epoch)
	}
}

func TestRefoundIsJudged(t *testing.T) {
	restored, _, _ := former(t, "format-2", 2)
	for what, change := range map[string]func(*Refound){
		"no backup":      func(c *Refound) { c.Backup = "" },
		"no content":     func(c *Refound) { c.Content = nil },
		"no secret":      func(c *Refound) { c.Content.Secret = nil },
		"no slots":       func(c *Refound) { c.Content.Slots = 0 },
		"no policies":    func(c *Refound) { c.Content.Policies = nil },
		"older versions": func(c *Refound) { c.Content.PolicyVersion = 0 },
		"no nodes":       func(c *Refound) { c.Expect = 0 },
	} {
		content := restored.State().Content()
		content.Epoch = max(content.Epoch, 1)
		c := Refound{ClusterID: "new", Backup: "b1", Expect: 1, Voters: 1, Content: content}
		change(&c)
		m := New()
		if r, err := m.Apply(1, Encode(c)); err != nil || r.Err == nil || m.State().ClusterID != "" {
			t.Errorf("%s: %v, %v", what, r.Err, err)
		}
	}
}

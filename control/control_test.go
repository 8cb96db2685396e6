package control

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// founding is a good first command.
func founding() Found {
	return Found{
		ClusterID: "c-1", Secret: bytes.Repeat([]byte{1}, 16), RoutingKey: bytes.Repeat([]byte{2}, 16),
		Slots: 16, Expect: 3, Voters: 3,
		Policies: &policy.Set{Home: []string{"tenant"}, Policies: []*policy.Policy{
			{ID: "z", Scope: []string{"tenant"}, Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 5, Burst: 5, Window: 1e9}},
			{ID: "a", Scope: []string{"tenant"}, Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 5, Burst: 5, Window: 1e9}},
		}},
	}
}

// checkStep holds what every command must hold. was is the snapshot of before, made before it.
func checkStep(t rapid.TB, before, after *State, r Result, was string) {
	t.Helper()
	if string(before.Snapshot()) != was {
		t.Fatalf("an older state was written to")
	}
	if r.Changed != (before != after) || r.Err != nil && r.Changed {
		t.Fatalf("changed %v, error %v, new state %v", r.Changed, r.Err, before != after)
	}
	if err := after.check(); err != nil {
		t.Fatalf("impossible state: %v", err)
	}
	if after.NextSerial < before.NextSerial || after.Revision < before.Revision {
		t.Fatalf("serial %d → %d, revision %d → %d", before.NextSerial, after.NextSerial, before.Revision, after.Revision)
	}
	for i, m := range before.Moves {
		if now, ok := after.Move(m.Slot); ok && now.Revision == m.Revision && now.Phase != m.Phase && m.Phase != Copying {
			t.Fatalf("move %+v is %s now", before.Moves[i], now.Phase)
		}
	}
	if after.NextRevision < before.NextRevision || after.NextGroup < before.NextGroup {
		t.Fatalf("next revision %d → %d, group %d → %d", before.NextRevision, after.NextRevision, before.NextGroup, after.NextGroup)
	}
	for _, g := range after.Groups {
		old, _ := before.Group(g.ID)
		if g.Epoch < old.Epoch {
			t.Fatalf("group %d: epoch %d → %d", g.ID, old.Epoch, g.Epoch)
		}
		for _, r := range g.Replicas {
			if o, ok := old.Replica(r.Serial); !ok && r.Serial < before.NextSerial {
				t.Fatalf("group %d: serial %d is used again", g.ID, r.Serial)
			} else if ok && (o.Node != r.Node || o.Incarnation != r.Incarnation) {
				t.Fatalf("group %d: replica %d was %v, is %v", g.ID, r.Serial, o, r)
			}
		}
	}
	placement := func(s *State) string {
		c := State{Groups: s.Groups, SlotGroup: s.SlotGroup, NextSerial: 1 << 60}
		return string(c.Snapshot())
	}
	if (placement(before) != placement(after)) != (before.Revision != after.Revision) {
		t.Fatalf("revision %d → %d, placement changed %v", before.Revision, after.Revision, placement(before) != placement(after))
	}
	m := New()
	if err := m.Restore(after.Snapshot()); err != nil || !bytes.Equal(m.Snapshot(), after.Snapshot()) {
		t.Fatalf("the snapshot does not come back: %v", err)
	}
}

func TestFoundingGivesPoliciesVersionOne(t *testing.T) {
	m := New()
	if r, err := m.Apply(1, Encode(founding())); r.Err != nil || err != nil || !r.Changed {
		t.Fatal(r, err)
	}
	s := m.State()
	if s.PolicyVersion != 1 || len(s.Policies.Policies) != 2 || s.Index != 1 {
		t.Errorf("version %d, %d policies, index %d", s.PolicyVersion, len(s.Policies.Policies), s.Index)
	}
	for _, p := range s.Policies.Policies {
		if p.Version != 1 {
			t.Errorf("policy %s has version %d", p.ID, p.Version)
		}
	}
	if s.Policies.Policies[0].ID != "a" {
		t.Error("policies are not by id")
	}
	none := founding()
	none.Policies = nil
	m = New()
	if r, err := m.Apply(1, Encode(none)); r.Err != nil || err != nil {
		t.Fatal(r, err)
	}
	if s := m.State(); s.PolicyVersion != 0 || !slices.Equal(s.Policies.Home, []string{"tenant"}) {
		t.Errorf("version %d, home %v", s.PolicyVersion, s.Policies.Home)
	}
}

func TestBadCommandsAreRefused(t *testing.T) {
	node := Node{Name: "a", Directory: "d", Incarnation: "i"}
	found := func(change func(*Found)) Found { c := founding(); change(&c); return c }
	register := func(change func(*Node)) Register { n := node; change(&n); return Register{Node: n} }
	for name, c := range map[string]struct {
		command Command
		kind    *fault.Kind
		text    string
	}{
		"no id":         {found(func(c *Found) { c.ClusterID = "" }), fault.InvalidArgument, "cluster_id"},
		"short secret":  {found(func(c *Found) { c.Secret = c.Secret[1:] }), fault.InvalidArgument, "secret"},
		"no key":        {found(func(c *Found) { c.RoutingKey = nil }), fault.InvalidArgument, "routing_key"},
		"no slots":      {found(func(c *Found) { c.Slots = 0 }), fault.InvalidArgument, "slots"},
		"many slots":    {found(func(c *Found) { c.Slots = 1<<16 + 1 }), fault.InvalidArgument, "slots"},
		"minus groups":  {found(func(c *Found) { c.Groups = -1 }), fault.InvalidArgument, "groups"},
		"no expect":     {found(func(c *Found) { c.Expect = 0 }), fault.InvalidArgument, "expect"},
		"two voters":    {found(func(c *Found) { c.Voters = 2 }), fault.InvalidArgument, "voters"},
		"bad policies":  {found(func(c *Found) { c.Policies.Policies[0].Limit.Window = 1 }), fault.InvalidArgument, "policies: policies[1].window"},
		"too early":     {Register{Node: node}, fault.NotReady, "no cluster yet"},
		"place early":   {Place{}, fault.NotReady, "no cluster yet"},
		"no name":       {register(func(n *Node) { n.Name = "" }), fault.InvalidArgument, "node.name"},
		"slash":         {register(func(n *Node) { n.Name = "a/b" }), fault.InvalidArgument, "node.name"},
		"at":            {register(func(n *Node) { n.Incarnation = "a@b" }), fault.InvalidArgument, "node.incarnation"},
		"no directory":  {register(func(n *Node) { n.Directory = "" }), fault.InvalidArgument, "node.directory"},
		"long address":  {register(func(n *Node) { n.GRPC = strings.Repeat("x", 2000) }), fault.InvalidArgument, "node.grpc"},
		"no such node":  {Remove{"x"}, fault.NotFound, `"x"`},
		"no such group": {Form{7, 1}, fault.NotFound, "group 7"},
	} {
		m := New()
		before := m.State()
		r, err := m.Apply(1, Encode(c.command))
		if err != nil || !errors.Is(r.Err, c.kind) || !strings.Contains(r.Err.Error(), c.text) || r.Changed || m.State() != before {
			t.Errorf("%s: %+v, %v, want a refusal with %q", name, r, err, c.text)
		}
	}
}

func TestUnreadableCommandsStopTheReplica(t *testing.T) {
	good := Encode(Place{})
	for name, data := range map[string][]byte{
		"empty":         {},
		"version":       append([]byte{2}, good[1:]...),
		"garbage":       {1, '{'},
		"unknown kind":  []byte("\x01" + `{"kind":"merge","command":{}}`),
		"unknown field": []byte("\x01" + `{"kind":"form","command":{"group":1,"epoch":1,"force":true}}`),
		"no command":    []byte("\x01" + `{"kind":"form"}`),
		"more":          append(slices.Clone(good), '{'),
		"negative":      []byte("\x01" + `{"kind":"form","command":{"group":-1,"epoch":1}}`),
		"algorithm": []byte("\x01" + strings.Replace(string(Encode(founding())[1:]),
			"token_bucket", "leaky", 1)),
	} {
		m := New()
		before := m.State()
		if r, err := m.Apply(3, data); err == nil || m.State() != before || !strings.Contains(err.Error(), "entry 3") {
			t.Errorf("%s: %+v, %v, want an error", name, r, err)
		}
	}
}

func TestOnlyTheFirstFoundingCounts(t *testing.T) {
	m := New()
	_, _ = m.Apply(1, Encode(founding()))
	second := founding()
	second.ClusterID = "c-2"
	r, err := m.Apply(2, Encode(second))
	if err != nil || !errors.Is(r.Err, fault.Conflict) || m.State().ClusterID != "c-1" {
		t.Errorf("%+v, %v, cluster %q", r, err, m.State().ClusterID)
	}
}

func TestReplicaIDComesBack(t *testing.T) {
	g, r := Group{ID: 7, Epoch: 2}, Replica{Serial: 31, Node: "a", Incarnation: "f00d"}
	id := g.ReplicaID(r)
	if want := "a/f00d/7/2/31"; id != want {
		t.Errorf("%q, want %q", id, want)
	}
	got, ok := ParseReplicaID(id)
	if d := cmp.Diff(ID{"a", "f00d", 7, 2, 31}, got); d != "" || !ok {
		t.Error(ok, d)
	}
	for _, bad := range []string{"", "a/dir/control", "a/i/1/1", "a/i/1/1/1/1", "/i/1/1/1", "a//1/1/1", "a/i/01/1/1", "a/i/+1/1/1", "a/i/4294967296/1/1", "a/i/1/1/x"} {
		if _, ok := ParseReplicaID(bad); ok {
			t.Errorf("%q is taken for a replica id", bad)
		}
	}
}

func TestRestoreChangesAllOrNothing(t *testing.T) {
	s := newScript(t)
	s.run("found\nstart a\nstart b\nstart c\nsettle\n")
	snapshot := s.m.Snapshot()
	m := New()
	if err := m.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.m.State(), m.State()); d != "" {
		t.Error(d)
	}
	replace := func(old, by string) []byte { return bytes.Replace(snapshot, []byte(old), []byte(by), 1) }
	before := m.State()
	for name, data := range map[string][]byte{
		"empty":         nil,
		"version":       append([]byte{9}, snapshot[1:]...),
		"torn":          snapshot[:len(snapshot)-1],
		"more":          append(slices.Clone(snapshot), '1'),
		"field":         replace(`"slots":`, `"slats":`),
		"slots":         replace(`"slots":16`, `"slots":17`),
		"serial":        replace(`"serial":2,`, `"serial":1,`),
		"future serial": replace(`"serial":9,`, `"serial":99,`),
		"role":          replace(`"role":1`, `"role":7`),
		"one node":      replace(`"node":"b"`, `"node":"a"`),
		"order":         replace(`"name":"a"`, `"name":"x"`),
		"policy":        replace(`"window_ns":1000000000`, `"window_ns":1`),
		"no policies":   append(slices.Clone(snapshot[:1]), `{"cluster_id":"x"}`...),
	} {
		if bytes.Equal(data, snapshot) {
			t.Fatalf("%s: nothing was replaced", name)
		}
		if err := m.Restore(data); err == nil || m.State() != before {
			t.Errorf("%s: %v, want an error and no change", name, err)
		}
	}
}

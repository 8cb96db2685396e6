package control

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringlimit/ringlimit/policy"
)

// former returns two machines that went on from testdata/DIR, which holds the log
// and the snapshot of a cluster whose nodes wrote nothing newer than a format:
// one from the snapshot, one from the log; and the index of its last entry.
func former(t *testing.T, dir string, newest byte) (restored, replayed *Machine, index uint64) {
	snapshot, err := os.ReadFile("testdata/" + dir + "/snapshot")
	if err != nil {
		t.Fatal(err)
	}
	restored, replayed = New(), New()
	if err := restored.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile("testdata/" + dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		entry, err := strconv.Unquote(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if index++; entry[0] > newest {
			t.Fatalf("entry %d has version %d", index, entry[0])
		}
		if r, err := replayed.Apply(index, []byte(entry)); err != nil || r.Err != nil {
			t.Fatal(r.Err, err)
		}
	}
	return restored, replayed, index
}

// TestFormatOneIsRead: snapshot and log lead to one state, and life goes on.
func TestFormatOneIsRead(t *testing.T) {
	restored, replayed, index := former(t, "format-1", 1)
	want := *replayed.State()
	if len(want.Audit) != 1 || want.Audit[0].Action != ActionFound {
		t.Errorf("audit %+v", want.Audit)
	}
	want.Audit = nil // what the snapshot could not say
	if d := cmp.Diff(&want, restored.State()); d != "" {
		t.Fatal(d)
	}

	p := *restored.State().Policies.Policies[0]
	p.Limit.Amount = 7
	for _, m := range []*Machine{restored, replayed} {
		if r, err := m.Apply(index+1, Encode(PutPolicy{Policy: &p})); err != nil || r.Err != nil || m.State().PolicyVersion != 2 {
			t.Fatal(r, err)
		}
		if got := m.Snapshot(); got[0] != 2 {
			t.Errorf("a snapshot of version %d", got[0])
		}
		if got := m.State().History(p.ID); len(got) != 2 || got[1].Version != 1 {
			t.Errorf("history %+v", got)
		}
	}
}

// TestFormatTwoIsRead: so they do; and groups and slots change once all nodes can
// read that, not before.
func TestFormatTwoIsRead(t *testing.T) {
	restored, replayed, index := former(t, "format-2", 2)
	if d := cmp.Diff(replayed.State(), restored.State()); d != "" {
		t.Fatal(d)
	}
	if got := replayed.Snapshot()[0]; got != 2 {
		t.Errorf("a snapshot of version %d, which the other nodes do not read", got)
	}
	look := Look{Quiet: Hysteresis}
	for _, c := range Plan(restored.State(), look) {
		if Format(c) > 2 {
			t.Errorf("%s is planned before all nodes read it", describe(c))
		}
	}
	for _, m := range []*Machine{restored, replayed} {
		for _, n := range m.State().Nodes {
			n.FormatMax, n.Incarnation = FormatMax, n.Incarnation+"x"
			if n.Removed {
				continue
			}
			index++
			if r, err := m.Apply(index, Encode(Register{Node: n})); err != nil || r.Err != nil {
				t.Fatal(r.Err, err)
			}
		}
		h := &history{t: t, m: m, twin: New(), said: map[string]string{}, index: index}
		if err := h.twin.Restore(m.Snapshot()); err != nil {
			t.Fatal(err)
		}
		h.settles()
		if s := m.State(); s.Wish == nil || len(s.Groups) != 3 || m.Snapshot()[0] != 3 {
			t.Errorf("wish %v, groups %+v", s.Wish, s.Groups)
		}
	}
}

// TestOldCommandsKeepTheirFormat: as long as policies stay as they are, nodes
// that read format 1 alone can follow.
func TestOldCommandsKeepTheirFormat(t *testing.T) {
	for kind, f := range kinds {
		c := f.empty()
		if want := int(f.newest); c.kind() != kind || Format(c) != want || int(Encode(c)[0]) != want || want > FormatMax {
			t.Errorf("%s: kind %s, format %d, entry %d", kind, c.kind(), Format(c), Encode(c)[0])
		}
	}
	for _, c := range []Command{Register{}, Place{}, Form{}, Reform{}, Replace{}, Promoted{}, Dropped{}, Miss{}, Remove{}} {
		if Format(c) != 1 {
			t.Errorf("%s has format %d", c.kind(), Format(c))
		}
	}
	entry := Encode(PutPolicy{Policy: &policy.Policy{}})
	if _, err := Decode(append([]byte{1}, bytes.Clone(entry)[1:]...)); err == nil {
		t.Error("a new command in an old entry is read")
	}
}

package controlraft

import (
	"bytes"
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/control"
)

func newMachine(t *testing.T) *machine {
	return &machine{m: control.New(), onChange: func() {}, fatal: func(err error) { t.Error(err) }}
}

// taken is what a machine's snapshot consists of.
func taken(t *testing.T, m *machine) []byte {
	t.Helper()
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s.(snapshot)
}

// TestSnapshotKnowsTheLastCommandThatChangedNothing: a replica that was sent it has
// applied what its leader has. It seemed to be behind until the next command, which may
// be hours away: it got no vote, and whoever changed a policy on its node waited.
func TestSnapshotKnowsTheLastCommandThatChangedNothing(t *testing.T) {
	m := newMachine(t)
	m.Apply(&raft.Log{Index: 5, Data: control.Encode(found())})
	if r := m.Apply(&raft.Log{Index: 7, Data: control.Encode(found())}).(control.Result); r.Changed {
		t.Fatal("founded twice")
	}
	b := taken(t, m)
	other := newMachine(t)
	if err := other.Restore(io.NopCloser(bytes.NewReader(b))); err != nil {
		t.Fatal(err)
	}
	if got := other.index.Load(); got != 7 {
		t.Errorf("applied up to %d, want 7", got)
	}
	if !bytes.Equal(taken(t, other), b) {
		t.Error("restored, it takes another snapshot")
	}
	if err := other.Restore(io.NopCloser(bytes.NewReader(m.m.Snapshot()))); err != nil || other.index.Load() != 5 {
		t.Errorf("of a build from before: applied up to %d, %v", other.index.Load(), err)
	}
}

func TestTornSnapshotChangesNothing(t *testing.T) {
	m := newMachine(t)
	m.Apply(&raft.Log{Index: 5, Data: control.Encode(found())})
	b := taken(t, m)
	for n := range b {
		if err := m.Restore(io.NopCloser(bytes.NewReader(b[:n]))); err == nil {
			t.Errorf("%d of %d bytes were restored", n, len(b))
		}
	}
	if !bytes.Equal(taken(t, m), b) {
		t.Error("the state has changed")
	}
}

package cluster

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/cluster/group"
)

// tableOf is a table whose slot 1 has buckets, to be salvaged.
func tableOf(t testing.TB, buckets int) *bucket.Table {
	table := bucket.NewTable(4)
	var b bucket.Builder
	for i := range buckets {
		b.Add(&bucket.Request{Home: 1, Takes: []bucket.Take{{
			Slot: 1, Key: bucket.Key{Hi: uint64(i+1) << 40, Lo: 7}, Cost: 1, Rule: bucket.Rule{
				Policy: 5, Version: 1, Loss: bucket.LossSalvage,
				Limit: bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 10, Burst: 10, Window: bucket.MaxWindow},
			},
		}}})
	}
	for i, entry := range [][]byte{bucket.HoldEntry(1, []uint16{0, 1, 2}), b.Detach(2)} {
		if err := table.Apply(uint64(i+1), entry, nil); err != nil {
			t.Fatal(err)
		}
	}
	return table
}

// copyOf has all slots of a table that it holds.
func copyOf(t testing.TB, table *bucket.Table) *group.Copy {
	c := group.NewCopy(table.Slots())
	for slot := range uint16(table.Slots()) {
		if !table.Held(slot) {
			continue
		}
		var chunks [][]byte
		e := table.Salvage(slot, 1)
		for last := false; !last; {
			var chunk []byte
			chunk, last = e.Final(1000)
			if chunk != nil {
				chunks = append(chunks, bytes.Clone(chunk))
			}
		}
		e.Close()
		if err := c.Load(slot, 0, chunks); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func lookAt(table *bucket.Table) *group.Look {
	l := &group.Look{Index: table.Index(), Term: 1, Slots: make([]bucket.SlotInfo, table.Slots())}
	for i := range l.Slots {
		l.Slots[i] = table.Slot(uint16(i))
	}
	return l
}

func TestCheckpointTakesOverWhatHasNotChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "g1e1.rlslots")
	table := tableOf(t, 50)
	write := func(stale bool, c *group.Copy) *slotsFile {
		t.Helper()
		w := checkpointWriter{look: lookAt(table), copy: c, stale: func(int) bool { return stale }, each: func() {}}
		if f, err := openSlots(path, checkpointFile); err == nil {
			w.last = f
			defer f.close()
		}
		if _, err := commitCheckpoint(path, fileHead{Slots: 4, Index: table.Index()}, w); err != nil {
			t.Fatal(err)
		}
		f, err := openSlots(path, checkpointFile)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.close)
		return f
	}
	first := write(true, copyOf(t, table))
	if len(first.at) != 3 || first.at[1].Buckets != 50 {
		t.Fatalf("%+v", first.at)
	}
	if err := table.Apply(3, bucket.StampEntry(5000, 0), nil); err != nil {
		t.Fatal(err)
	}
	second := write(false, nil)
	was, _ := first.chunks(first.at[1])
	is, err := second.chunks(second.at[1])
	if err != nil || !bytes.Equal(bytes.Join(was, nil), bytes.Join(is, nil)) {
		t.Errorf("chunks differ, %v", err)
	}
	if x := second.at[1]; x.Index != 3 || x.Time != 5000 {
		t.Errorf("taken over as of %+v", x)
	}

	// A slot that leaves is carried along for a while, as it was.
	m := []bucket.Move{{Slot: 1, Revision: 1}}
	for i, entry := range [][]byte{bucket.SealEntry(6000, m), bucket.ForgetEntry(7000, m)} {
		if err := table.Apply(uint64(4+i), entry, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range keptFor + 1 {
		f := write(false, nil)
		x, there := f.at[1]
		if there != (i < keptFor) || there && (x.Kept != i+1 || x.Time != 5000 || x.Index != 3) {
			t.Errorf("checkpoint %d after it left: %v, %+v", i+1, there, x)
		}
	}
}

func TestSourcesAreRanked(t *testing.T) {
	best := source{node: "a", kind: fromReplica, own: true, offeredSlot: offeredSlot{Revision: 2, Term: 3, Index: 9}}
	order := []source{
		best,
		{node: "b", kind: fromReplica, own: true, offeredSlot: best.offeredSlot},
		{node: "a", kind: fromCheckpoint, own: true, offeredSlot: best.offeredSlot},
		{node: "a", kind: fromReplica, own: true, offeredSlot: offeredSlot{Revision: 2, Term: 3, Index: 8}},
		{node: "a", kind: fromCheckpoint, own: true, offeredSlot: offeredSlot{Revision: 2, Term: 2, Index: 99}},
		{node: "a", kind: fromCheckpoint, offeredSlot: offeredSlot{Revision: 2, Term: 9, Index: 99}}, // of the group that it left
		{node: "a", kind: fromCheckpoint, own: true, offeredSlot: offeredSlot{Revision: 1, Term: 9, Index: 99}},
		{node: "a", kind: fromBackup, own: true},
	}
	for i := range order {
		for j := range order {
			if got := newer(order[i], order[j]); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%d against %d: %d", i, j, got)
			}
		}
	}
}

// FuzzSlotsFile: whatever a file holds, reading it ends with an error or with slots.
func FuzzSlotsFile(f *testing.F) {
	path := filepath.Join(f.TempDir(), "f")
	table := tableOf(f, 5)
	w := checkpointWriter{look: lookAt(table), copy: copyOf(f, table), stale: func(int) bool { return true }, each: func() {}}
	if _, err := commitCheckpoint(path, fileHead{Slots: 4}, w); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-13])
	f.Fuzz(func(t *testing.T, b []byte) {
		at := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(at, b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := openSlots(at, checkpointFile)
		if err != nil {
			return
		}
		defer s.close()
		for slot, x := range s.at {
			chunks, err := s.chunks(x)
			if err != nil {
				t.Errorf("slot %d: %v", slot, err)
			}
			_ = group.NewCopy(s.head.Slots).Load(slot, x.Time, chunks)
		}
	})
}

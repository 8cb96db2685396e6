package controlraft

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/control"
)

func open(t *testing.T, dir string) (*Group, func()) {
	t.Helper()
	return openTold(t, dir, func() {})
}

// openTold is open with what is called when something changes.
func openTold(t *testing.T, dir string, changed func()) (*Group, func()) {
	t.Helper()
	_, transport := raft.NewInmemTransport("a/d/control")
	g, err := Open(Config{
		ID: "a/d/control", Dir: dir, Transport: alone{transport}, Logger: slog.New(slog.DiscardHandler),
		OnChange: changed, Fatal: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	return g, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func found() control.Found {
	return control.Found{ClusterID: "c", Secret: make([]byte, 16), RoutingKey: make([]byte, 16), Slots: 16, Expect: 1, Voters: 1}
}

func lead(t *testing.T, g *Group) {
	t.Helper()
	for range 500 {
		if g.Leads() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("does not lead")
}

// TestWhatChangesNothingWakesNobody: whoever proposes what is refused looks again when
// it is told of a change, and would propose it again at once, for ever.
func TestWhatChangesNothingWakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		g, stop := openTold(t, "", func() { told.Add(1) })
		defer stop()
		if err := g.Bootstrap(); err != nil {
			t.Fatal(err)
		}
		lead(t, g)
		if err := g.Propose(t.Context(), found()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		before := told.Load()
		if err := g.Propose(t.Context(), control.Left{Name: "nobody"}); err == nil {
			t.Fatal("an unknown node has left")
		}
		synctest.Wait()
		if n := told.Load() - before; n != 0 {
			t.Errorf("told of %d changes", n)
		}
	})
}

func TestStateOutlivesTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		g, stop := open(t, dir)
		if g.Existing() {
			t.Error("an empty directory holds a state")
		}
		if err := g.Propose(t.Context(), found()); !errors.Is(err, fault.NotLeader) {
			t.Errorf("a command before there is a leader: %v", err)
		}
		if err := g.Bootstrap(); err != nil {
			t.Fatal(err)
		}
		lead(t, g)
		if err := g.Propose(t.Context(), found()); err != nil {
			t.Fatal(err)
		}
		if err := g.Propose(t.Context(), found()); !errors.Is(err, fault.Conflict) {
			t.Errorf("a second cluster in one state: %v", err)
		}
		stop()

		g, stop = open(t, dir)
		defer stop()
		if !g.Existing() {
			t.Error("the state is forgotten")
		}
		lead(t, g)
		if id := g.State().ClusterID; id != "c" {
			t.Errorf("cluster id %q after a restart", id)
		}
		if err := g.Bootstrap(); err == nil {
			t.Error("bootstrapped twice")
		}
	})
}

// A snapshot whose transfer breaks off must not replace a good one.
func TestCancelledSnapshotLeavesTheLastOne(t *testing.T) {
	var s memSnapshots
	write := func(index uint64, text string, end func(raft.SnapshotSink) error) {
		t.Helper()
		k, err := s.Create(1, index, 1, raft.Configuration{}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(k, text); err != nil {
			t.Fatal(err)
		}
		if list, _ := s.List(); len(list) > 0 && list[0].Index == index {
			t.Error("listed before it is closed")
		}
		if err := end(k); err != nil {
			t.Fatal(err)
		}
	}
	write(10, "good", raft.SnapshotSink.Close)
	write(20, "torn", func(k raft.SnapshotSink) error { return errors.Join(k.Cancel(), k.Close()) })
	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].Index != 10 {
		t.Fatalf("%v, %v", list, err)
	}
	_, r, err := s.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(r); string(b) != "good" {
		t.Errorf("read %q", b)
	}
}

func TestLeaderThatCannotStoreLeadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, transport := raft.NewInmemTransport("a/d/control")
		var full atomic.Bool
		g, err := Open(Config{
			ID: "a/d/control", Transport: alone{transport}, Logger: slog.New(slog.DiscardHandler),
			OnChange: func() {}, Fatal: func(err error) { t.Error(err) },
			Storing: func() error {
				if full.Load() {
					return errors.New("no space left on device")
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		if err := g.Bootstrap(); err != nil {
			t.Fatal(err)
		}
		lead(t, g)
		full.Store(true)
		if err := g.Propose(t.Context(), found()); !errors.Is(err, fault.OutcomeUnknown) {
			t.Errorf("a command on a full disk: %v", err)
		}
		full.Store(false)
		lead(t, g)
		if err := g.Propose(t.Context(), found()); err != nil {
			t.Errorf("a command with room again: %v", err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// alone is the transport of a group of one.
type alone struct{ *raft.InmemTransport }

func (alone) Committed(uint64) {}
func (alone) Serve(*raft.Raft) {}
func (alone) Release()         {}

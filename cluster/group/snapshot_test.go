package group

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/bucket"
)

func readAll(t *testing.T, d *dump) string {
	t.Helper()
	size := d.size()
	s := d.stream(func() {})
	defer s.Close()
	b, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != size {
		t.Errorf("a dump of %d bytes says it has %d", len(b), size)
	}
	return string(b)
}

// shortLog makes raft drop entries early, so that a new replica needs a dump.
func shortLog(c *Config) { c.LogBytes = 64 << 10 }

// load takes until the function it returns is called; each of eight callers
// rests for pace after a take.
func (w *world) load(keys uint64, pace time.Duration) (stop func() (admitted int64)) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	var admitted atomic.Int64
	for c := range 8 {
		wg.Go(func() {
			for seq := uint64(1); ctx.Err() == nil; seq++ {
				q := ask((seq*8+uint64(c))%keys, oneOff(1_000_000), 1, uint64(c+1), seq)
				q.ID.Acked = seq - 1
				if code, err := w.decide(q, 20*time.Second); err == nil && (code == bucket.Admitted || code == bucket.Repeated) {
					admitted.Add(1)
				} else {
					w.t.Errorf("take under load: %v, %v", code, err)
				}
				time.Sleep(pace)
			}
		})
	}
	return func() int64 { cancel(); wg.Wait(); return admitted.Load() }
}

func TestFreshReplicaCatchesUpBySnapshotWhileTakesGoOn(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, shortLog)
		l := w.holdAll()
		stop := w.load(3000, 2*time.Millisecond)
		time.Sleep(2 * time.Second)
		dead := w.others(l)[0]
		w.kill(dead)
		n := w.fresh(shortLog)
		w.member("remove", func(ctx context.Context, l *Replica) error { return l.Remove(ctx, dead.id) })
		w.join(n)
		time.Sleep(time.Second)
		admitted := stop()
		if n.r.metrics.SnapshotsReceived.Load() == 0 {
			t.Error("no snapshot was needed")
		}
		w.identical(w.all()...)
		w.kill(w.leader())
		l = w.leader()
		var used uint64
		for k := range uint64(3000) {
			used += 1_000_000 - w.level(l, k, oneOff(1_000_000))
		}
		if used != uint64(admitted) {
			t.Errorf("%d tokens are used after %d admissions", used, admitted)
		}
	})
}

// TestSnapshotSlowerThanTheLogIsSentOnce: the log waits for the one that is sent
// a snapshot, however often it would have been shortened meanwhile.
func TestSnapshotSlowerThanTheLogIsSentOnce(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, shortLog)
		l := w.holdAll()
		stop := w.load(500, 50*time.Millisecond)
		time.Sleep(20 * time.Second)
		written := func() uint64 { m := l.r.Metrics(); return m.EntryBytes.Load() + 64*m.Entries.Load() }
		var from atomic.Uint64
		w.net.hook(hooks{body: func(_, _ string, r io.Reader) io.Reader {
			return readerFunc(func(p []byte) (int, error) {
				if written() < from.Load()+(64<<10) { // so slow that the log passes its bound meanwhile
					time.Sleep(100 * time.Millisecond)
					p = p[:min(len(p), 64)]
				}
				return r.Read(p)
			})
		}})
		dead := w.others(l)[0]
		w.kill(dead)
		n := w.fresh(shortLog)
		w.member("remove", func(ctx context.Context, l *Replica) error { return l.Remove(ctx, dead.id) })
		began, sent := time.Now(), l.r.metrics.SnapshotsSent.Load()
		from.Store(written())
		w.join(n)
		took := time.Since(began)
		stop()
		if got := l.r.metrics.SnapshotsSent.Load() - sent; got != 1 || n.r.metrics.SnapshotsReceived.Load() != 1 {
			t.Errorf("%d snapshots were sent and %d received in %v", got, n.r.metrics.SnapshotsReceived.Load(), took)
		}
		if got := written() - from.Load(); got < 64<<10 {
			t.Errorf("the log grew by %d bytes in %v: too few to matter", got, took)
		}
		w.identical(w.all()...)
	})
}

func TestMembersChangeDuringASnapshot(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, shortLog)
		l := w.holdAll()
		stop := w.load(500, 2*time.Millisecond)
		time.Sleep(time.Second)
		gate := make(chan struct{})
		var once sync.Once
		w.net.hook(hooks{body: func(_, _ string, r io.Reader) io.Reader {
			return readerFunc(func(p []byte) (int, error) { <-gate; return r.Read(p) })
		}})
		x, y := w.fresh(shortLog), w.fresh(shortLog)
		w.member("add x", func(ctx context.Context, l *Replica) error { return l.AddNonvoter(ctx, x.id) })
		time.Sleep(200 * time.Millisecond)
		w.member("add y", func(ctx context.Context, l *Replica) error { return l.AddNonvoter(ctx, y.id) })
		w.member("remove y", func(ctx context.Context, l *Replica) error { return l.Remove(ctx, y.id) })
		once.Do(func() { close(gate) })
		w.member("promote x", func(ctx context.Context, l *Replica) error { return l.Promote(ctx, x.id) })
		time.Sleep(time.Second)
		stop()
		w.identical(l, x)
		a, b := l.r.Status(), x.r.Status()
		if len(b.Voters) != 4 || len(b.NonVoters) != 0 || a.ConfigIndex != b.ConfigIndex {
			t.Errorf("leader %+v\nnew %+v", a, b)
		}
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestBrokenSnapshotChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, shortLog)
		w.holdAll()
		stop := w.load(500, 2*time.Millisecond)
		time.Sleep(time.Second)
		var tries atomic.Int64
		w.net.hook(hooks{body: func(_, _ string, r io.Reader) io.Reader {
			switch tries.Add(1) {
			case 1:
				return io.LimitReader(r, 5000) // breaks off
			case 2:
				n := 0
				return readerFunc(func(p []byte) (int, error) { // one bit flips
					k, err := r.Read(p)
					if n <= 3000 && n+k > 3000 {
						p[3000-n] ^= 4
					}
					n += k
					return k, err
				})
			}
			return r
		}})
		n := w.fresh(shortLog)
		w.member("add", func(ctx context.Context, l *Replica) error { return l.AddNonvoter(ctx, n.id) })
		w.until(5*time.Second, "two broken transfers", func() bool { return tries.Load() >= 2 })
		if s := n.r.Status(); s.Applied != 0 && tries.Load() == 2 {
			t.Errorf("a broken snapshot was taken over: %+v", s)
		}
		w.member("promote", func(ctx context.Context, l *Replica) error { return l.Promote(ctx, n.id) })
		stop()
		w.identical(w.leader(), n)
		if tries.Load() < 3 {
			t.Errorf("caught up by %d transfers", tries.Load())
		}
	})
}

func TestOldSnapshotIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, w *world) {
		w.start(3, nil)
		l := w.holdAll()
		old, err := l.r.fsm.dump()
		if err != nil {
			t.Fatal(err)
		}
		body := readAll(t, old)
		meta := old.meta("x")
		for i := range 20 {
			take(l, ask(uint64(i), oneOff(10), 1, 1, uint64(i+1)), time.Second)
		}
		o := w.others(l)[0]
		w.until(5*time.Second, "the follower has applied", func() bool { return o.r.Status().Applied > meta.Index })
		before := o.r.Status()
		req := &raft.InstallSnapshotRequest{
			SnapshotVersion: 1, Term: l.r.Status().Term, Leader: []byte(l.id), LastLogIndex: meta.Index, LastLogTerm: meta.Term,
			Configuration: raft.EncodeConfiguration(meta.Configuration), ConfigurationIndex: meta.ConfigurationIndex, Size: meta.Size,
		}
		req.RPCHeader = raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(l.id), Addr: []byte(l.id)}
		var resp raft.InstallSnapshotResponse
		err = l.r.cfg.Transport.InstallSnapshot(raft.ServerID(o.id), raft.ServerAddress(o.id), req, &resp, strings.NewReader(body))
		if err == nil && resp.Success {
			t.Error("it was accepted")
		}
		if after := o.r.Status(); after.Applied < before.Applied || after.Time < before.Time {
			t.Errorf("the follower went back from %+v to %+v", before, after)
		}
	})
}

func TestSnapshotStoreKeepsNothingOfACancelledSink(t *testing.T) {
	s := &snapshots{fsm: &fsm{table: bucket.NewTable(4)}, table: func() *bucket.Table { return bucket.NewTable(4) }, metrics: new(Metrics)}
	k, err := s.Create(1, 5, 2, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if err := k.Cancel(); err != nil {
		t.Fatal(err)
	}
	if l, _ := s.List(); len(l) != 0 || s.take() != nil {
		t.Error("something is left")
	}
	k, _ = s.Create(1, 5, 2, raft.Configuration{}, 1, nil)
	if err := k.Close(); err == nil {
		t.Error("an empty snapshot was published")
	}
	own, _ := s.Create(1, 9, 2, raft.Configuration{}, 1, nil)
	if err := (metadataOnly{}).Persist(own); err != nil {
		t.Fatal(err)
	}
	late, _ := s.Create(1, 7, 2, raft.Configuration{}, 1, nil)
	if err := (metadataOnly{}).Persist(late); !errors.Is(err, errSuperseded) {
		t.Errorf("an older snapshot replaced a newer one: %v", err)
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	h := header{index: 9, term: 4, confAt: 3, conf: raft.Configuration{Servers: []raft.Server{{ID: "a", Address: "b"}}}}
	b := h.encode()
	got, err := readHeader(bytes.NewReader(b))
	if err != nil || got.index != 9 || got.term != 4 || got.confAt != 3 || len(got.conf.Servers) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	for i := range b {
		c := bytes.Clone(b)
		c[i] ^= 1
		if _, err := readHeader(bytes.NewReader(c)); err == nil {
			t.Errorf("a flipped bit in byte %d was not seen", i)
		}
	}
}

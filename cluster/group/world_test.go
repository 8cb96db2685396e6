package group

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
)

const testSlots = 16

// world is a group in one bubble.
type world struct {
	t   *testing.T
	net *memNet

	mu    sync.Mutex // guards what follows
	nodes map[string]*testNode
	owner string
	next  int
}

type testNode struct {
	id     string
	r      *Replica
	cancel context.CancelFunc
	done   chan struct{}
	err    error // of Run; read after done

	mu     sync.Mutex // guards what follows
	broken []error
	fatal  []error
}

// bubble runs f with a world that is torn down afterwards.
func bubble(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: newMemNet(), nodes: map[string]*testNode{}}
		defer w.stop()
		f(t, w)
	})
}

func (w *world) open(id string, boot []string, mod func(*Config)) *testNode {
	w.t.Helper()
	n := &testNode{id: id, done: make(chan struct{})}
	level := slog.LevelError + 4
	if os.Getenv("GROUP_LOG") != "" {
		level = slog.LevelDebug
	}
	cfg := Config{
		ID: id, Bootstrap: boot, Slots: testSlots, Transport: w.net.add(id),
		Logger: slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: level})),
		Owner:  func() string { w.mu.Lock(); defer w.mu.Unlock(); return w.owner },
		LinkUp: func(o string) time.Duration { return w.net.up(id, o) },
		Applied: func(o string) (uint64, bool) {
			p := w.node(o)
			if p == nil || w.net.up(id, o) == 0 {
				return 0, false
			}
			return p.r.Status().Applied, true
		},
		Broken: func(err error) { n.mu.Lock(); n.broken = append(n.broken, err); n.mu.Unlock() },
		Fatal:  func(err error) { n.mu.Lock(); n.fatal = append(n.fatal, err); n.mu.Unlock() },
	}
	if mod != nil {
		mod(&cfg)
	}
	r, err := Open(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	n.r, r.driven = r, &hangable{fsm: r.fsm}
	return n
}

func (w *world) run(n *testNode) {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	w.mu.Lock()
	w.nodes[n.id] = n
	w.mu.Unlock()
	go func() {
		defer close(n.done)
		n.err = n.r.Run(ctx)
	}()
}

// start opens and runs the first voters.
func (w *world) start(voters int, mod func(*Config)) []*testNode {
	w.t.Helper()
	var ids []string
	for range voters {
		w.next++
		ids = append(ids, fmt.Sprintf("r%d", w.next))
	}
	var ns []*testNode
	for _, id := range ids {
		n := w.open(id, ids, mod)
		ns = append(ns, n)
	}
	for _, n := range ns {
		w.run(n)
	}
	return ns
}

// fresh runs a replica that knows nothing yet.
func (w *world) fresh(mod func(*Config)) *testNode {
	w.t.Helper()
	w.next++
	n := w.open(fmt.Sprintf("r%d", w.next), nil, mod)
	w.run(n)
	return n
}

func (w *world) node(id string) *testNode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[id]
}

func (w *world) all() []*testNode {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ns []*testNode
	for _, n := range w.nodes {
		ns = append(ns, n)
	}
	return ns
}

// kill ends n as kill -9 does: its links break first.
func (w *world) kill(n *testNode) {
	w.mu.Lock()
	delete(w.nodes, n.id)
	w.mu.Unlock()
	_ = n.r.cfg.Transport.(*memTransport).Close()
	n.cancel()
	<-n.done
}

func (w *world) stop() {
	ns := w.all()
	for _, n := range ns {
		n.cancel()
	}
	for _, n := range ns {
		<-n.done
		if n.err != nil && !w.t.Failed() {
			n.mu.Lock()
			expected := len(n.fatal) > 0
			n.mu.Unlock()
			if !expected {
				w.t.Errorf("run of %s: %v", n.id, n.err)
			}
		}
	}
}

// until waits for cond, up to limit.
func (w *world) until(limit time.Duration, what string, cond func() bool) {
	w.t.Helper()
	for end := time.Now().Add(limit); !cond(); {
		if time.Now().After(end) {
			w.t.Fatalf("after %v still not: %s", limit, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// leader waits for a serving leader other than those given.
func (w *world) leader(not ...*testNode) *testNode {
	w.t.Helper()
	var l *testNode
	w.until(10*time.Second, "a serving leader", func() bool {
		l = nil
		var term uint64
	next:
		for _, n := range w.all() {
			for _, x := range not {
				if x == n {
					continue next
				}
			}
			if s := n.r.Status(); s.Serving && s.Term > term {
				l, term = n, s.Term
			}
		}
		return l != nil
	})
	return l
}

// holdAll makes the group hold all slots.
func (w *world) holdAll() *testNode {
	w.t.Helper()
	l := w.leader()
	var slots []uint16
	for i := range testSlots {
		slots = append(slots, uint16(i))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := l.r.Hold(ctx, slots); err != nil {
		w.t.Fatal(err)
	}
	return l
}

func (w *world) others(l *testNode) []*testNode {
	var o []*testNode
	for _, n := range w.all() {
		if n != l {
			o = append(o, n)
		}
	}
	return o
}

var perSecond = func(n uint64) bucket.Limit {
	return bucket.Limit{Algorithm: bucket.TokenBucket, Amount: n, Burst: n, Window: int64(time.Second)}
}

// oneOff is a limit that practically does not refill within a test.
func oneOff(n uint64) bucket.Limit {
	return bucket.Limit{Algorithm: bucket.TokenBucket, Amount: n, Burst: n, Window: bucket.MaxWindow}
}

// mix spreads keys as the product's hash does.
func mix(x uint64) uint64 {
	x = (x + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// ask is a request for cost of one bucket, named by session and sequence; sequence 0: unnamed.
func ask(key uint64, l bucket.Limit, cost, session, sequence uint64) Request {
	slot := uint16(key % testSlots)
	q := Request{Request: bucket.Request{Home: slot, Takes: []bucket.Take{{
		Slot: slot, Key: bucket.Key{Hi: mix(key), Lo: mix(key + 1<<32)}, Rule: bucket.Rule{Policy: 7, Version: 1, Limit: l}, Cost: cost,
	}}}}
	if sequence > 0 {
		q.ID = bucket.ID{Kind: bucket.ClientID, Session: session, Sequence: sequence, Content: key + cost}
	}
	return q
}

// take asks n once and returns the code of the one request.
func take(n *testNode, q Request, wait time.Duration) (bucket.Code, Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	var out Outcome
	if err := n.r.Take(ctx, []Request{q}, &out); err != nil {
		return 0, out, err
	}
	return out.Results.Items[0].Code, out, nil
}

// decide asks as a client does: whoever serves, again with the same id until it
// has an answer.
func (w *world) decide(q Request, deadline time.Duration) (bucket.Code, error) {
	begun := time.Now()
	err := error(fault.NoLeader)
	for time.Since(begun) < deadline {
		for _, n := range w.all() {
			var code bucket.Code
			code, _, err = take(n, q, 300*time.Millisecond)
			if err == nil {
				return code, nil
			}
			if errors.Is(err, fault.OutcomeUnknown) || errors.Is(err, fault.Deadline) {
				q.FirstAttempt = false
			}
			q.ID.AgeNanos = uint64(time.Since(begun))
		}
		time.Sleep(5 * time.Millisecond)
	}
	return 0, err
}

// level looks how many tokens a bucket has.
func (w *world) level(l *testNode, key uint64, limit bucket.Limit) uint64 {
	w.t.Helper()
	_, out, err := take(l, ask(key, limit, 0, 0, 0), 2*time.Second)
	if err != nil {
		w.t.Fatal(err)
	}
	return out.Results.Answers[out.Results.Items[0].First].Remaining
}

// identical checks that replicas chain the same hash at equal index, and that
// they do meet at one.
func (w *world) identical(ns ...*testNode) {
	w.t.Helper()
	chains, met := map[uint64]uint64{}, map[uint64]int{}
	seen := map[string]uint64{}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, n := range ns {
			s := n.r.Status()
			if seen[n.id] == s.Applied {
				continue
			}
			seen[n.id] = s.Applied
			if c, ok := chains[s.Applied]; ok && c != s.Chain {
				w.t.Errorf("%s chains %x at index %d, another replica %x", n.id, s.Chain, s.Applied, c)
				return
			}
			chains[s.Applied] = s.Chain
			met[s.Applied]++
		}
	}
	for _, k := range met {
		if k == len(ns) {
			return
		}
	}
	w.t.Errorf("%d replicas never showed one index: %v", len(ns), seen)
}

package group

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// memNet connects replicas of one test. It can be cut in one direction, slowed,
// and hooked; a transport that is closed breaks what waits for it.
type memNet struct {
	mu    sync.Mutex // guards what follows
	nodes map[string]*memTransport
	cut   map[[2]string]bool
	since map[[2]string]time.Time // of the last change of a link

	hooks hooks

	sent atomic.Int64 // messages
}

// hooks is what a test does to messages; nil functions do nothing.
type hooks struct {
	delay func(src, dst string, cmd any) time.Duration     // 100 µs if nil
	lose  func(src, dst string, cmd any, answer bool) bool // whether a message or its answer gets lost
	body  func(src, dst string, r io.Reader) io.Reader     // what a snapshot becomes on its way
}

// hook replaces what is done to messages.
func (n *memNet) hook(h hooks) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hooks = h
}

func (n *memNet) hooked() hooks {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hooks
}

func newMemNet() *memNet {
	return &memNet{nodes: map[string]*memTransport{}, cut: map[[2]string]bool{}, since: map[[2]string]time.Time{}}
}

var errUnreachable = errors.New("unreachable")

func (n *memNet) add(id string) *memTransport {
	t := &memTransport{net: n, id: id, rpcs: make(chan raft.RPC), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nodes[id] = t
	for other := range n.nodes {
		n.since[pair(id, other)] = time.Now()
	}
	return t
}

func pair(a, b string) [2]string {
	if a > b {
		a, b = b, a
	}
	return [2]string{a, b}
}

// setCut cuts or heals the way from a to b.
func (n *memNet) setCut(a, b string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{a, b}] = cut
	n.since[pair(a, b)] = time.Now()
}

// isolate cuts or heals both ways between id and all others.
func (n *memNet) isolate(id string, cut bool) {
	n.mu.Lock()
	var others []string
	for o := range n.nodes {
		if o != id {
			others = append(others, o)
		}
	}
	n.mu.Unlock()
	for _, o := range others {
		n.setCut(id, o, cut)
		n.setCut(o, id, cut)
	}
}

// up says how long a and b have been reaching each other.
func (n *memNet) up(a, b string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.nodes[a] == nil || n.nodes[b] == nil || n.cut[[2]string{a, b}] || n.cut[[2]string{b, a}] {
		return 0
	}
	return time.Since(n.since[pair(a, b)]) + 1
}

// way returns the transport of dst if src reaches it.
func (n *memNet) way(src, dst string) *memTransport {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cut[[2]string{src, dst}] {
		return nil
	}
	return n.nodes[dst]
}

type memTransport struct {
	net    *memNet
	id     string
	rpcs   chan raft.RPC
	closed chan struct{}
	once   sync.Once
	beat   atomic.Pointer[func(raft.RPC)]
}

const memTimeout = 500 * time.Millisecond

func (t *memTransport) Consumer() <-chan raft.RPC     { return t.rpcs }
func (t *memTransport) LocalAddr() raft.ServerAddress { return raft.ServerAddress(t.id) }
func (t *memTransport) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte {
	return []byte(a)
}
func (t *memTransport) DecodePeer(b []byte) raft.ServerAddress   { return raft.ServerAddress(b) }
func (t *memTransport) SetHeartbeatHandler(f func(rpc raft.RPC)) { t.beat.Store(&f) }
func (t *memTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// Close takes the transport off the net and breaks all that waits for it.
func (t *memTransport) Close() error {
	t.once.Do(func() {
		t.net.mu.Lock()
		if t.net.nodes[t.id] == t {
			delete(t.net.nodes, t.id)
		}
		t.net.mu.Unlock()
		close(t.closed)
	})
	return nil
}

// send carries one message and its answer.
func (t *memTransport) send(dst string, cmd any, body io.Reader) (any, error) {
	n := t.net
	n.sent.Add(1)
	h := n.hooked()
	d := 100 * time.Microsecond
	if h.delay != nil {
		d = h.delay(t.id, dst, cmd)
	}
	time.Sleep(d)
	p := n.way(t.id, dst)
	if p == nil || h.lose != nil && h.lose(t.id, dst, cmd, false) {
		time.Sleep(20 * time.Millisecond)
		return nil, errUnreachable
	}
	answer := make(chan raft.RPCResponse, 1)
	rpc := raft.RPC{Command: clone(cmd), Reader: body, RespChan: answer}
	timeout := memTimeout
	if body != nil {
		timeout = time.Minute
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	if beat := p.beat.Load(); beat != nil && heartbeat(cmd) {
		go (*beat)(rpc)
	} else {
		select {
		case p.rpcs <- rpc:
		case <-timer.C:
			return nil, errors.New("timeout")
		case <-p.closed:
			return nil, errUnreachable
		case <-t.closed:
			return nil, errUnreachable
		}
	}
	select {
	case a := <-answer:
		if n.way(dst, t.id) == nil || h.lose != nil && h.lose(t.id, dst, cmd, true) {
			time.Sleep(20 * time.Millisecond)
			return nil, errUnreachable
		}
		return a.Response, a.Error
	case <-timer.C:
		return nil, errors.New("timeout")
	case <-p.closed:
		return nil, errUnreachable
	case <-t.closed:
		return nil, errUnreachable
	}
}

func heartbeat(cmd any) bool {
	a, ok := cmd.(*raft.AppendEntriesRequest)
	return ok && len(a.Entries) == 0 && a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && a.LeaderCommitIndex == 0
}

// clone copies a message as a wire does.
func clone(cmd any) any {
	a, ok := cmd.(*raft.AppendEntriesRequest)
	if !ok {
		return cmd
	}
	c := *a
	c.Entries = nil
	for _, e := range a.Entries {
		l := *e
		l.Data = bytes.Clone(e.Data)
		c.Entries = append(c.Entries, &l)
	}
	return &c
}

func (t *memTransport) AppendEntries(_ raft.ServerID, to raft.ServerAddress, a *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	r, err := t.send(string(to), a, nil)
	if err == nil {
		*resp = *r.(*raft.AppendEntriesResponse)
	}
	return err
}

func (t *memTransport) RequestVote(_ raft.ServerID, to raft.ServerAddress, a *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	r, err := t.send(string(to), a, nil)
	if err == nil {
		*resp = *r.(*raft.RequestVoteResponse)
	}
	return err
}

func (t *memTransport) RequestPreVote(_ raft.ServerID, to raft.ServerAddress, a *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	r, err := t.send(string(to), a, nil)
	if err == nil {
		*resp = *r.(*raft.RequestPreVoteResponse)
	}
	return err
}

func (t *memTransport) TimeoutNow(_ raft.ServerID, to raft.ServerAddress, a *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	r, err := t.send(string(to), a, nil)
	if err == nil {
		*resp = *r.(*raft.TimeoutNowResponse)
	}
	return err
}

func (t *memTransport) InstallSnapshot(_ raft.ServerID, to raft.ServerAddress, a *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if h := t.net.hooked(); h.body != nil {
		data = h.body(t.id, string(to), data)
	}
	r, err := t.send(string(to), a, &breakable{r: data, t: t, to: string(to)})
	if err == nil {
		*resp = *r.(*raft.InstallSnapshotResponse)
	}
	return err
}

// breakable is the way of a snapshot, which a cut breaks.
type breakable struct {
	r  io.Reader
	t  *memTransport
	to string
}

func (b *breakable) Read(p []byte) (int, error) {
	if b.t.net.way(b.t.id, b.to) == nil {
		return 0, errUnreachable
	}
	return b.r.Read(p[:min(len(p), 4096)])
}

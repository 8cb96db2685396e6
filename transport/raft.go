package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const (
	consumerSize = 64 // requests handed to raft that it has not taken
	maxAnswers   = 2 * consumerSize
	appendLimit  = 1 << 20 // an append is cut after the entry that passes this
	smallAppend  = 64 << 10
	bigTimeout   = 2 * time.Second // of an append above smallAppend
)

// RaftTransport is the raft.Transport of one replica on this node. Its replica
// id is its raft.ServerID and its raft.ServerAddress; the node is the part of an
// id before the first "/".
//
// Requests to it are handed to raft in the order in which they came over each
// link, and answered in the order in which raft answers, by one goroutine. If raft
// does not keep up, requests are refused: nobody else waits for it.
type RaftTransport struct {
	p         *Peers
	id        string
	self      []byte // id
	consumer  chan raft.RPC
	answers   chan raft.RPCResponse // of everything handed over by deliver, in order
	ctx       context.Context       // ends with Close
	cancel    context.CancelFunc
	heartbeat atomic.Pointer[func(raft.RPC)]
	raft      atomic.Pointer[served]
	released  chan struct{} // closed by release, once
	release   func()
	term      atomic.Uint64 // newest term raft answered with
	slow      atomic.Bool   // a heartbeat is in hand that may have to store a term
	receiving atomic.Bool   // a snapshot is being received; who set it owns the next two

	snapFrom   string // sender of the newest snapshot …
	snapNumber uint64 // … and its number

	commits   sync.Mutex // guards the next two
	committed uint64     // as told by the replica's owner
	followers map[raft.ServerAddress]*follower

	mu      sync.Mutex // guards what follows; keeps consumer and waiting in the same order
	closed  bool
	waiting []pending // requests that raft has not answered, oldest first
}

// pending is a request in the hands of raft.
type pending struct {
	c      *conn
	number uint64
	kind   kind
}

var (
	_ raft.Transport   = (*RaftTransport)(nil)
	_ raft.WithPreVote = (*RaftTransport)(nil)
	_ raft.WithClose   = (*RaftTransport)(nil)
)

// errClosed is returned to raft by a transport that has been closed.
var errClosed = errors.New("transport of this replica is closed")

// Raft registers a replica of this node: from now on requests for it are
// accepted. Close ends that. An id that is registered is replaced: the earlier
// transport is closed.
func (p *Peers) Raft(id string) *RaftTransport {
	t := &RaftTransport{
		p: p, id: id, self: []byte(id),
		consumer:  make(chan raft.RPC, consumerSize),
		answers:   make(chan raft.RPCResponse, maxAnswers),
		followers: make(map[raft.ServerAddress]*follower),
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.released = make(chan struct{})
	t.release = sync.OnceFunc(func() { close(t.released) })
	p.mu.Lock()
	old := p.replicas[id]
	if p.stopped {
		t.closed = true
		t.cancel()
	} else {
		p.replicas[id] = t
		p.wg.Go(t.respond)
	}
	p.mu.Unlock()
	if old != nil {
		old.Close()
	}
	return t
}

// Close unregisters the replica and fails what it waits for, at once. Raft calls
// it at the end of its shutdown; calling it before makes the shutdown quick.
func (t *RaftTransport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	t.cancel()
	waiting := t.waiting
	t.waiting = nil
	t.mu.Unlock()
	t.p.mu.Lock()
	if t.p.replicas[t.id] == t {
		delete(t.p.replicas, t.id)
	}
	t.p.mu.Unlock()
	for _, w := range waiting {
		w.c.refuse(w.number, "replica "+t.id+" is stopping")
	}
	return nil
}

// StandForElection hands the replica's own raft a TimeoutNow, as if its leader
// had asked it to take over: raft starts an election without waiting and
// without asking for pre-votes. It does not wait; false: raft has no room for it.
// The caller makes sure that this is a voter, a follower, and that the leader is
// gone.
func (t *RaftTransport) StandForElection() bool {
	rpc := raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: header(t.self)}, RespChan: make(chan raft.RPCResponse, 1)}
	select {
	case t.consumer <- rpc:
		return true
	default:
		return false
	}
}

// Consumer returns the requests for this replica.
func (t *RaftTransport) Consumer() <-chan raft.RPC { return t.consumer }

// LocalAddr returns the replica id.
func (t *RaftTransport) LocalAddr() raft.ServerAddress { return raft.ServerAddress(t.id) }

// EncodePeer returns the address as bytes.
func (t *RaftTransport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte {
	return []byte(addr)
}

// DecodePeer is the inverse of EncodePeer.
func (t *RaftTransport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler makes heartbeats bypass the Consumer.
func (t *RaftTransport) SetHeartbeatHandler(f func(raft.RPC)) { t.heartbeat.Store(&f) }

// AppendEntriesPipeline is not supported: raft then sends one append at a time,
// with all entries it has, which measured no slower, and does not know the
// deadlocks of pipelines.
func (t *RaftTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries sends entries, or a heartbeat. A heartbeat and its answer may
// wait up to 50 ms each for company. Empty appends do not: raft sends nothing
// else to this follower until one is answered, so that an entry, or the first
// append of a new leader, would wait as well.
//
// It waits for a connection where there is none, see hold; heartbeats, on which a
// leader's lease depends, do not.
//
// Of many entries only the first 1 MiB go, and args.Entries is cut accordingly:
// raft looks at it to see what has been sent, and sends the rest.
func (t *RaftTransport) AppendEntries(_ raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if isHeartbeat(args) {
		return t.ask(target, kindHeartbeat, lazy, raftTimeout, resp, func(b []byte) []byte {
			return appendHeartbeat(b, args)
		})
	}
	if err := t.hold(target, args.Term); err != nil {
		return err
	}
	size := 0
	for i, e := range args.Entries {
		if size += len(e.Data) + len(e.Extensions); size > appendLimit {
			args.Entries = args.Entries[:i+1]
			break
		}
	}
	timeout := raftTimeout
	if size > smallAppend {
		timeout = bigTimeout
	}
	err := t.ask(target, kindAppend, now, timeout, resp, func(b []byte) []byte { return appendAppend(b, args) })
	if err == nil && resp.Success {
		t.appended(target, args)
	}
	return err
}

// RequestVote asks for a vote.
func (t *RaftTransport) RequestVote(_ raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return t.ask(target, kindVote, now, raftTimeout, resp, func(b []byte) []byte { return appendVote(b, args) })
}

// RequestPreVote asks whether a vote would be given.
func (t *RaftTransport) RequestPreVote(_ raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return t.ask(target, kindPreVote, now, raftTimeout, resp, func(b []byte) []byte { return appendPreVote(b, args) })
}

// TimeoutNow tells a follower to take over.
func (t *RaftTransport) TimeoutNow(_ raft.ServerID, target raft.ServerAddress, _ *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return t.ask(target, kindTimeoutNow, now, raftTimeout, resp, nil)
}

// InstallSnapshot sends a snapshot on a connection of its own, see snapshot.go, once the
// node is there.
func (t *RaftTransport) InstallSnapshot(_ raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if err := t.holdSnapshot(target, args.Term, data); err != nil {
		return err
	}
	return t.sendSnapshot(string(target), args, resp, data)
}

// nodeOf returns the node of a replica.
func nodeOf[T ~string](id T) string {
	node, _, _ := strings.Cut(string(id), "/")
	return node
}

// ask sends a request to another replica and waits for the answer in resp.
func (t *RaftTransport) ask(target raft.ServerAddress, k kind, u urgency, timeout time.Duration, resp any, encode func([]byte) []byte) error {
	l := t.p.link(nodeOf(target))
	c := l.cur.Load()
	if c == nil {
		_, _, _ = l.ask() // somebody dials; this request does not wait for it
		return fmt.Errorf("%w %s", ErrNoLink, l.node)
	}
	q := t.p.newCall()
	defer t.p.free(q)
	q.want, q.deadline, q.resp, q.target = k.answer(), t.p.in(timeout), resp, []byte(target)
	number, err := c.begin(q)
	if err != nil {
		return err
	}
	_, err = c.out.addBound(u, k, channelKey{t.id, string(target)}, number, encode)
	if err != nil && c.take(number) != nil {
		return fmt.Errorf("to %s: %w", target, err)
	}
	if err = c.wait(q, number, t.ctx.Done()); errors.Is(err, errAbandoned) {
		return errClosed
	}
	return err
}

// fillRaft decodes an answer into the response raft passed.
func (k *call) fillRaft(body []byte) bool {
	switch r := k.resp.(type) {
	case *raft.AppendEntriesResponse:
		return decodeAppended(body, k.target, r)
	case *raft.RequestVoteResponse:
		return decodeVoted(body, k.target, r)
	case *raft.RequestPreVoteResponse:
		return decodePreVoted(body, k.target, r)
	case *raft.TimeoutNowResponse:
		r.RPCHeader = header(k.target)
		return len(body) == 0
	}
	panic(fmt.Sprintf("response of type %T", k.resp))
}

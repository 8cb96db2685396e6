package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// receiveSnapshot serves a connection that brings a snapshot: it hands raft the
// request with a reader of the chunks, and sends raft's answer.
func (p *Peers) receiveSnapshot(h hello, nc *socket) {
	if _, err := nc.Write(p.welcome("").append(nil)); err != nil {
		return
	}
	l := newLane(nc)
	t, args, err := l.request(p, h.from.Node)
	if err != nil {
		_ = l.send(kindRefused, true, func(b []byte) []byte { return append(b, err.Error()...) })
		return
	}
	defer t.receiving.Store(false)
	in := &chunks{l: l, left: args.Size, doubt: func() string { return p.vouched(nc, h.from.Node) }}
	answer := make(chan raft.RPCResponse, 1)
	var r raft.RPCResponse
	select {
	case t.consumer <- raft.RPC{Command: args, Reader: in, RespChan: answer}:
		r = l.restoring(t, answer)
	default:
		r.Error = fmt.Errorf("replica %s does not keep up", t.id)
	}
	resp, ok := r.Response.(*raft.InstallSnapshotResponse)
	if r.Error == nil && !ok {
		r.Error = fmt.Errorf("raft answered with a %T", r.Response)
	}
	if r.Error != nil {
		p.warn("peer: snapshot not installed", "replica", t.id, "from", string(args.ID), "error", r.Error)
		_ = l.send(kindRefused, true, func(b []byte) []byte { return append(b, r.Error.Error()...) })
		return
	}
	_ = l.send(kindInstalled, true, func(b []byte) []byte { return appendInstalled(b, resp) })
}

// request reads the first frame and claims the replica it is for: one snapshot
// at a time. The caller gives receiving back.
func (l *lane) request(p *Peers, node string) (*RaftTransport, *raft.InstallSnapshotRequest, error) {
	f, err := l.next()
	if err != nil {
		return nil, nil, err
	}
	if refusal := p.vouched(l.nc, node); refusal != "" {
		return nil, nil, errors.New(refusal)
	}
	d := decoder{b: f.body}
	from, to, number := d.name(), d.name(), d.uint()
	if d.bad || f.kind != kindSnapshot || nodeOf(from) != node {
		return nil, nil, errors.New("malformed request")
	}
	args, ok := decodeSnapshot(d.b, []byte(from))
	if !ok {
		return nil, nil, errors.New("malformed request")
	}
	t := p.replica(to)
	if t == nil {
		return nil, nil, fmt.Errorf("unknown replica %s", to)
	}
	if !t.receiving.CompareAndSwap(false, true) {
		return nil, nil, fmt.Errorf("replica %s is receiving a snapshot", to)
	}
	if from == t.snapFrom && number <= t.snapNumber {
		t.receiving.Store(false)
		return nil, nil, errors.New("a newer snapshot has come before this one")
	}
	t.snapFrom, t.snapNumber = from, number
	return t, args, nil
}

// restoring waits for raft's answer and keeps the sender informed meanwhile.
func (l *lane) restoring(t *RaftTransport, answer <-chan raft.RPCResponse) raft.RPCResponse {
	tick := time.NewTicker(workingEvery)
	defer tick.Stop()
	limit := time.Now().Add(restoreLimit)
	for {
		select {
		case r := <-answer:
			return r
		case <-t.ctx.Done():
			return raft.RPCResponse{Error: errClosed}
		case <-tick.C:
			if time.Now().After(limit) {
				return raft.RPCResponse{Error: errors.New("raft took too long to restore")}
			}
			if err := l.send(kindWorking, true, nil); err != nil {
				return raft.RPCResponse{Error: err}
			}
		}
	}
}

// chunks is the data of a snapshot as it arrives. It returns io.EOF only after
// all bytes and the matching check sum, if the sender still is who it said; any error
// is final. Raft reads it in its main loop, so a sender that stalls is given up soon.
type chunks struct {
	l    *lane
	left int64
	buf  bytes.Reader // the rest of the chunk read last
	all  uint32       // CRC so far
	err  error

	doubt func() string // why the sender is not believed any more; "": it is
}

func (c *chunks) Read(b []byte) (int, error) {
	for c.err == nil && c.buf.Len() == 0 {
		c.err = c.fetch()
	}
	if c.buf.Len() > 0 {
		return c.buf.Read(b)
	}
	return 0, c.err
}

// fetch reads the next frame.
func (c *chunks) fetch() error {
	f, err := c.l.next()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return fmt.Errorf("snapshot broken off: %w", err)
	}
	if len(f.body) < 4 {
		return errFrame
	}
	sum, data := binary.LittleEndian.Uint32(f.body), f.body[4:]
	switch {
	case f.kind == kindEnd && len(data) == 0 && c.left == 0 && sum == c.all:
		if refusal := c.doubt(); refusal != "" {
			return errors.New(refusal)
		}
		return io.EOF
	case f.kind != kindChunk || int64(len(data)) > c.left || crc32.Checksum(data, castagnoli) != sum:
		return errors.New("snapshot damaged on the way")
	}
	c.left -= int64(len(data))
	c.all = crc32.Update(c.all, castagnoli, data)
	c.buf.Reset(data)
	return nil
}

package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"
)

// A snapshot has a connection of its own: hello and welcome, then frames.
//
//	sender → receiver: request (from, to, number, raft's request), chunks, end
//	receiver → sender: working, every second while raft restores; then
//	                   installed or refused
//
// A chunk is its CRC and at most chunkSize bytes; the end carries the CRC of all.
// Either side gives up when the other makes no progress for stall. Numbers grow:
// a request that comes late, after a newer one of the same sender, is refused,
// for it would take the replica back in time.
const (
	chunkSize    = 64 << 10
	stall        = 3 * time.Second
	workingEvery = time.Second
	restoreLimit = 2 * time.Minute // from the last chunk to raft's answer
)

const (
	kindSnapshot kind = iota + 64 // on snapshot connections only
	kindChunk
	kindEnd
	kindWorking
	kindInstalled
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// lane is one side of a connection beside the link: for a snapshot, or for calls
// that carry much.
type lane struct {
	nc   *socket
	w    *bufio.Writer
	read frameReader
	buf  []byte
}

func newLane(nc *socket) *lane {
	return &lane{nc: nc, w: bufio.NewWriterSize(nc, chunkSize), read: frameReader{r: nc.r}}
}

// send writes one frame; flush too, unless more follows at once.
func (l *lane) send(k kind, flush bool, encode func([]byte) []byte) error {
	b := appendHead(l.buf[:0], k, 0, 0)
	if encode != nil {
		b = encode(b)
	}
	if !endFrame(b, 0) {
		return fmt.Errorf("message of %d bytes", len(b))
	}
	l.buf = b
	if err := l.nc.SetWriteDeadline(time.Now().Add(stall)); err != nil {
		return err
	}
	if _, err := l.w.Write(b); err != nil || !flush {
		return err
	}
	return l.w.Flush()
}

// next reads one frame, which must come within stall.
func (l *lane) next() (frame, error) {
	if err := l.nc.SetReadDeadline(time.Now().Add(stall)); err != nil {
		return frame{}, err
	}
	return l.read.next()
}

// sendSnapshot is InstallSnapshot: it streams data to the replica and waits for
// its answer. At most one snapshot at a time goes to a replica.
func (t *RaftTransport) sendSnapshot(target string, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if !t.p.claim(target) {
		return fmt.Errorf("a snapshot for %s is on its way", target)
	}
	defer t.p.unclaim(target)
	l, err := t.p.dialLane(t.ctx, nodeOf(target), forSnapshot)
	if err != nil {
		return fmt.Errorf("snapshot to %s: %w", target, err)
	}
	defer l.nc.Close()
	defer context.AfterFunc(t.ctx, func() { l.nc.Close() })()
	if err := l.stream(t, target, args, data); err != nil {
		// What the receiver says, if it says something, is the better reason.
		if refusal := l.outcome(target, resp); errors.Is(refusal, errRefused) {
			err = refusal
		}
		return fmt.Errorf("snapshot to %s: %w", target, err)
	}
	if err := l.outcome(target, resp); err != nil {
		return fmt.Errorf("snapshot to %s: %w", target, err)
	}
	return nil
}

// claim reserves the sending of a snapshot to a replica.
func (p *Peers) claim(target string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sending[target] {
		return false
	}
	p.sending[target] = true
	return true
}

func (p *Peers) unclaim(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sending, target)
}

// dialLane connects to a node for something else than its link.
func (p *Peers) dialLane(ctx context.Context, node string, why purpose) (*lane, error) {
	nc, err := p.dial(ctx, node)
	if err != nil {
		return nil, err
	}
	nc.SetDeadline(time.Now().Add(dialTimeout))
	h := hello{purpose: why, cluster: p.cluster(), from: p.self(), target: node, id: rand.Uint64()}
	if _, err := p.greet(nc, h); err != nil {
		nc.Close()
		return nil, err
	}
	return newLane(nc), nil
}

// stream sends the request and all data.
func (l *lane) stream(t *RaftTransport, to string, args *raft.InstallSnapshotRequest, data io.Reader) error {
	err := l.send(kindSnapshot, true, func(b []byte) []byte {
		b = appendBytes(appendBytes(b, t.id), to)
		return appendSnapshot(binary.AppendUvarint(b, uint64(t.p.now())), args)
	})
	if err != nil {
		return err
	}
	chunk := make([]byte, chunkSize)
	all, left := uint32(0), args.Size
	for left > 0 {
		n, err := io.ReadFull(data, chunk[:min(left, chunkSize)])
		if err != nil {
			return fmt.Errorf("read the snapshot: %w", err)
		}
		left -= int64(n)
		all = crc32.Update(all, castagnoli, chunk[:n])
		err = l.send(kindChunk, false, func(b []byte) []byte {
			b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(chunk[:n], castagnoli))
			return append(b, chunk[:n]...)
		})
		if err != nil {
			return err
		}
	}
	return l.send(kindEnd, true, func(b []byte) []byte { return binary.LittleEndian.AppendUint32(b, all) })
}

// outcome waits for the receiver's answer.
func (l *lane) outcome(target string, resp *raft.InstallSnapshotResponse) error {
	for {
		f, err := l.next()
		switch {
		case err != nil:
			return err
		case f.kind == kindWorking:
		case f.kind == kindRefused:
			return fmt.Errorf("%w: %s", errRefused, f.body)
		case f.kind == kindInstalled && decodeInstalled(f.body, []byte(target), resp):
			return nil
		default:
			return errFrame
		}
	}
}

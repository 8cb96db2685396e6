package transport

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
)

// urgency says when a frame must go out.
type urgency uint8

const (
	now  urgency = iota // the caller writes it, unless somebody is writing
	soon                // the link's writer writes it: for callers that must not wait, such as readers
	lazy                // with the next frame that is not lazy
)

// writeChunk is how much one system call writes at most; each has writeTimeout.
const writeChunk = 256 << 10

// yieldBelow is how little a caller would write that lets others go first, who may
// have something to add: with many callers this turns many small writes into one,
// and alone it costs next to nothing.
const yieldBelow = 4 << 10

// ErrFull is returned when more than 8 MiB wait to be written to the node.
var ErrFull = errors.New("outbox full")

// outbox gathers the frames for one connection. While one goroutine writes,
// others add; what was added goes out as the next write. Nobody holds the lock
// while writing.
type outbox struct {
	nc   net.Conn
	fail func(error)   // told once that writing failed; called without the lock
	wake chan struct{} // capacity 1: the writer has work
	done chan struct{} // closed when the connection ended

	mu       sync.Mutex // guards what follows
	pend     []byte     // frames not yet handed to a write
	spare    []byte     // the buffer of the last write, to be used again
	due      bool       // pend holds a frame that is not lazy
	writing  bool       // somebody writes, or the writer has been woken
	closed   bool
	added    uint64 // bytes ever added
	channels map[channelKey]uint64
	until    time.Time // write deadline set on nc; used by whoever writes
}

// channelKey names the two replicas of a channel.
type channelKey struct{ from, to string }

// add appends one frame with the body that encode appends. It returns where in
// the stream the frame begins. It fails with ErrFull, errBroken, or because the
// frame is too long; then nothing is sent.
func (o *outbox) add(u urgency, k kind, channel, number uint64, encode func([]byte) []byte) (uint64, error) {
	o.mu.Lock()
	at, err := o.put(k, channel, number, encode)
	return at, o.release(u, err)
}

// addBound is add for a frame between two replicas: it binds them to a channel
// when this is their first frame.
func (o *outbox) addBound(u urgency, k kind, key channelKey, number uint64, encode func([]byte) []byte) (uint64, error) {
	o.mu.Lock()
	channel, err := o.bind(key)
	if err != nil {
		return 0, o.release(u, err)
	}
	at, err := o.put(k, channel, number, encode)
	return at, o.release(u, err)
}

// bind returns the channel of key. o.mu is held.
func (o *outbox) bind(key channelKey) (uint64, error) {
	if n, ok := o.channels[key]; ok {
		return n, nil
	}
	if len(o.channels) >= maxChannels {
		return 0, errors.New("too many pairs of replicas on one connection")
	}
	n := uint64(len(o.channels) + 1)
	_, err := o.put(kindBind, n, 0, func(b []byte) []byte {
		return appendBytes(appendBytes(b, key.from), key.to)
	})
	if err != nil {
		return 0, err
	}
	if o.channels == nil {
		o.channels = map[channelKey]uint64{}
	}
	o.channels[key] = n
	return n, nil
}

// put appends one frame. o.mu is held.
func (o *outbox) put(k kind, channel, number uint64, encode func([]byte) []byte) (uint64, error) {
	if o.closed {
		return 0, errBroken
	}
	if len(o.pend) > maxOutbox {
		return 0, ErrFull
	}
	start, at := len(o.pend), o.added
	b := appendHead(o.pend, k, channel, number)
	if encode != nil {
		b = encode(b)
	}
	if !endFrame(b, start) {
		return 0, fmt.Errorf("message of %d bytes, %d are allowed", len(b)-start, maxFrame)
	}
	o.pend = b
	o.added += uint64(len(b) - start)
	return at, nil
}

// release unlocks and sees to it that what is due gets written.
func (o *outbox) release(u urgency, err error) error {
	if err != nil || u == lazy {
		o.mu.Unlock()
		return err
	}
	o.due = true
	if o.writing {
		o.mu.Unlock()
		return nil
	}
	o.writing = true
	if u == soon {
		o.mu.Unlock()
		o.wake <- struct{}{} // has room: writing was false
		return nil
	}
	if len(o.pend) < yieldBelow {
		o.mu.Unlock()
		runtime.Gosched()
		o.mu.Lock()
	}
	b := o.swap()
	o.mu.Unlock()
	if o.write(b) {
		o.wake <- struct{}{} // others added meanwhile: the writer goes on, the caller is free
	}
	return nil
}

// swap takes what is pending. o.mu is held.
func (o *outbox) swap() []byte {
	b := o.pend
	o.pend, o.spare, o.due = o.spare[:0], nil, false
	return b
}

// write writes b and reports whether more is due. If not, or after a failure,
// nobody is writing any more.
func (o *outbox) write(b []byte) (more bool) {
	err := o.send(b)
	o.mu.Lock()
	if cap(b) <= keepBuffer && o.spare == nil {
		o.spare = b[:0]
	}
	o.writing = o.due && err == nil && !o.closed
	more = o.writing
	o.mu.Unlock()
	if err != nil {
		o.fail(err)
	}
	return more
}

func (o *outbox) send(b []byte) error {
	for len(b) > 0 {
		if t := time.Now(); o.until.Sub(t) < writeTimeout {
			o.until = t.Add(writeTimeout + writeTimeout/4) // set anew only every 125 ms
			if err := o.nc.SetWriteDeadline(o.until); err != nil {
				return err
			}
		}
		n, err := o.nc.Write(b[:min(len(b), writeChunk)])
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// run is the writer: it writes what nobody else does, until the connection ends.
func (o *outbox) run() {
	for {
		select {
		case <-o.done:
			return
		case <-o.wake:
		}
		for more := true; more; {
			o.mu.Lock()
			b := o.swap()
			o.mu.Unlock()
			more = o.write(b)
		}
	}
}

// close refuses all further frames. It returns how many bytes were handed to
// writes; frames that begin there or later never left.
func (o *outbox) close() (handed uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		close(o.done)
	}
	return o.added - uint64(len(o.pend))
}

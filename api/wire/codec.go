// Package wire is how the hot messages of the wire contract are read and
// written by hand: the same bytes as protobuf, with limits checked before
// anything is allocated in proportion to a message, errors that name the field,
// and a fraction of the allocations. Fuzz tests hold it to protobuf.
//
// Codec hands raw bytes to those who decode by hand (Raw) and leaves all other
// messages to protobuf.
package wire

import (
	"fmt"
	"sync"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec for all but Raw
	"google.golang.org/grpc/mem"
)

// What one message may hold.
const (
	MaxMessage    = 1 << 20   // bytes
	MaxRequests   = 1000      // in a batch or a message of a stream
	MaxPrincipals = 8         // of one subject
	MaxAttributes = 16        // of one subject
	MaxCosts      = 16        // costs for single policies, of one request
	MaxFile       = 128 << 20 // bytes of a policy file, in messages of at most MaxMessage
)

// keepBytes is how large a buffer is kept for the next message.
const keepBytes = 256 << 10

// Raw is a message as its bytes. Receiving reuses B and stores no message that
// is longer than Limit: Length tells how long it was.
type Raw struct {
	B      []byte
	Limit  int // bytes; 0: MaxMessage
	Length int // of the message received
}

// Check returns an error if the received message is longer than the limit.
func (r *Raw) Check() error {
	if r.Length > r.limit() {
		return invalid("", "message of %d bytes is longer than %d", r.Length, r.limit())
	}
	return nil
}

func (r *Raw) limit() int {
	if r.Limit > 0 {
		return r.Limit
	}
	return MaxMessage
}

func (r *Raw) set(data mem.BufferSlice) {
	r.Length = data.Len()
	if r.Length > r.limit() {
		r.B = r.B[:0]
		return
	}
	if cap(r.B) < r.Length || cap(r.B) > keepBytes && r.Length < keepBytes {
		r.B = make([]byte, r.Length, r.Length+r.Length/4)
	}
	r.B = r.B[:r.Length]
	data.CopyTo(r.B)
}

// Codec is a gRPC codec: bytes for *Raw, protobuf for everything else. Give it
// to grpc.ForceServerCodecV2 or grpc.ForceCodecV2.
type Codec struct{}

var fallback = encoding.GetCodecV2("proto")

// Name is that of the protobuf codec, because the bytes are the same.
func (Codec) Name() string { return "proto" }

// Marshal copies the bytes of a *Raw, so that B may be reused at once.
func (Codec) Marshal(v any) (mem.BufferSlice, error) {
	r, ok := v.(*Raw)
	if !ok {
		data, err := fallback.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("marshal %T: %w", v, err)
		}
		return data, nil
	}
	return mem.BufferSlice{mem.Copy(r.B, &copies)}, nil
}

// copies are the buffers of Marshal.
var copies bufferPool

// bufferPool is a mem.BufferPool. grpc's own clears each buffer that it hands out, which
// for messages of usual size costs more than to fill it; it has the large ones.
type bufferPool struct{ pool sync.Pool }

func (p *bufferPool) Get(length int) *[]byte {
	if length > keepBytes {
		return mem.DefaultBufferPool().Get(length)
	}
	b, ok := p.pool.Get().(*[]byte)
	if !ok || cap(*b) < length {
		made := make([]byte, length, min(length+length/4, keepBytes))
		return &made
	}
	*b = (*b)[:length]
	return b
}

func (p *bufferPool) Put(b *[]byte) {
	if cap(*b) > keepBytes {
		mem.DefaultBufferPool().Put(b)
		return
	}
	p.pool.Put(b)
}

// Unmarshal copies the bytes into a *Raw.
func (Codec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*Raw)
	if !ok {
		return fallback.Unmarshal(data, v)
	}
	r.set(data)
	return nil
}

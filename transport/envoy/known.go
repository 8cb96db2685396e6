package envoy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

// staleAfter is how old the policies known here may be while calls come.
const staleAfter = time.Second

// known are the policies as the node told them last: a compiled set of its own, made
// at the first call and again after a change, at most every staleAfter.
type known struct {
	fallback func(context.Context, *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error)
	start    func(func())
	secret   [16]byte // of the keys of a share's buckets
	born     time.Time
	now      atomic.Pointer[policy.Index] // nil: not told yet
	asked    atomic.Int64                 // ns since born; the first call asks at once
	asking   atomic.Bool                  // whoever set it asks, and owns digest
	digest   uint64
	first    chan struct{} // closed by once when it was asked for the first time
	once     sync.Once
}

func newKnown(fallback func(context.Context, *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error), start func(func())) *known {
	k := &known{fallback: fallback, start: start, born: time.Now(), first: make(chan struct{})}
	_, _ = rand.Read(k.secret[:]) // never fails
	return k
}

// index returns the policies, nil if the node has not told any before ctx ends. It
// waits at the first calls alone.
func (k *known) index(ctx context.Context) *policy.Index {
	now := int64(time.Since(k.born))
	if last := k.asked.Load(); last == 0 || now-last > int64(staleAfter) {
		if k.asking.CompareAndSwap(false, true) {
			k.asked.Store(max(now, 1))
			k.start(k.ask)
		}
	}
	if ix := k.now.Load(); ix != nil {
		return ix
	}
	select {
	case <-k.first:
	case <-ctx.Done():
	}
	return k.now.Load()
}

// ask takes over what the node has, if it is anything else. A failure keeps what is
// known: the next call after staleAfter asks again.
func (k *known) ask() {
	defer k.asking.Store(false)
	defer k.once.Do(func() { close(k.first) })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	digest, data, err := k.fetch(ctx)
	if err != nil || data == nil {
		return
	}
	set, err := policy.Decode(data)
	if err != nil {
		return
	}
	if ix, err := policy.Compile(set, policy.Keys{Secret: k.secret, Slots: 1}); err == nil {
		k.now.Store(ix)
		k.digest = digest
	}
}

var errChanging = errors.New("the policies change faster than they can be read")

// fetch reads all pieces; data is nil if nothing has changed.
func (k *known) fetch(ctx context.Context) (digest uint64, data []byte, err error) {
	const tries = 1000
	r := &pb.GetFallbackRequest{Digest: k.digest}
	for range tries {
		piece, err := k.fallback(ctx, r)
		if err != nil {
			return 0, nil, fmt.Errorf("ask for the policies: %w", err)
		}
		if len(piece.GetData()) == 0 {
			return 0, nil, nil
		}
		if piece.GetOffset() != uint64(len(data)) || piece.GetDigest() != r.GetDigest() {
			data = data[:0] // others took effect meanwhile: from the start
		}
		if piece.GetOffset() != uint64(len(data)) {
			return 0, nil, errChanging
		}
		data = append(data, piece.GetData()...)
		if uint64(len(data)) >= piece.GetTotal() {
			return piece.GetDigest(), data, nil
		}
		r = &pb.GetFallbackRequest{Digest: piece.GetDigest(), Offset: uint64(len(data))}
	}
	return 0, nil, errChanging
}

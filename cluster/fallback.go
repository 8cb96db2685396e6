package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

// fallbacks is what clients decide by while no node answers in time: the policies,
// encoded once for each set and not kept longer than somebody reads them, and who
// would share them.
type fallbacks struct {
	census census

	mu     sync.Mutex // guards the rest; held while encoding
	set    *policy.Set
	digest uint64
	total  int
	data   []byte // nil: nobody has read it for a while
	read   time.Time
}

const (
	fallbackPiece = 512 << 10   // bytes of policies in one answer
	fallbackKept  = time.Minute // how long encoded policies are kept after somebody read them
)

// GetFallback answers a client that gets ready for an outage. While it has the
// newest policies already that costs a look at a table.
func (n *Node) GetFallback(_ context.Context, r *pb.GetFallbackRequest) (*pb.GetFallbackResponse, error) {
	s := n.control.State()
	if s.Policies == nil {
		return nil, fault.New(fault.NotReady, "node %s knows no cluster yet", n.self.name)
	}
	now := time.Now()
	out := n.fallbacks.piece(s.Policies, r.GetDigest(), r.GetOffset(), now)
	out.Version, out.ClusterId = s.PolicyVersion, s.ClusterID
	if session := r.GetSession(); session != 0 {
		clients, rank, settled := n.fallbacks.census.count(session, now)
		out.Clients, out.Rank, out.Settled = uint32(clients), uint32(rank), settled
	}
	return out, nil
}

// piece is the answer about a set: nothing but its digest to who has it, else its
// bytes from offset on, or from 0 to who reads another.
func (f *fallbacks) piece(set *policy.Set, digest, offset uint64, now time.Time) *pb.GetFallbackResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set != set {
		f.set = set
		f.encode()
	}
	out := &pb.GetFallbackResponse{Digest: f.digest, Total: uint64(f.total)}
	switch {
	case digest == f.digest && offset == 0:
		if f.data != nil && now.Sub(f.read) > fallbackKept {
			f.data = nil
		}
		return out
	case digest == f.digest && offset < out.Total:
		out.Offset = offset
	}
	if f.data == nil {
		f.encode()
	}
	f.read = now
	out.Data = f.data[out.Offset:min(out.Total, out.Offset+fallbackPiece)]
	return out
}

// encode makes the bytes of the set, which are the same on every node. mu is held.
func (f *fallbacks) encode() {
	f.data = f.set.Encode()
	f.total = len(f.data)
	f.digest = max(xxh3.Hash(f.data), 1) // 0 means none
}

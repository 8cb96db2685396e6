package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client/internal/fallback"
	"github.com/ringlimit/ringlimit/policy"
)

// How a client gets ready for an outage: every few seconds it asks for the policies
// and for how many clients there are, which also is what makes it one of them.
const (
	prepareEvery   = 5 * time.Second // at most; between 4 and 5
	prepareTimeout = time.Second     // of one answer
	prepareNodes   = 3               // asked each time: the same ones by all clients, so that each knows all of them
	maxPolicyBytes = 64 << 20        // of the policies; larger sets are not kept
)

// kept is what the client was told, as it stands in the cache.
type kept struct {
	cluster  string
	version  uint64
	digest   uint64 // 0: nothing yet
	policies []byte // the set, encoded
	share    fallback.Share
}

// prepareFirst makes what must be there before the first call. Called by New alone.
func (c *Client) prepareFirst() error {
	if n := c.options.clients; n < 1 || n > maxClients {
		return fault.New(fault.InvalidArgument, "client count %d, want 1 … %d", n, maxClients)
	}
	c.meters = newMeters(c.options.meters, c.options.logger)
	share := anyRank(c.options.clients)
	c.kept.share = share
	c.share.Store(&share)
	if c.options.neverDegrade {
		return nil
	}
	return c.loadCache()
}

// anyRank is a share of a client that does not know its rank, which is that of its
// session: by chance, so that all together have the whole on average.
func anyRank(clients int) fallback.Share {
	return fallback.Share{Clients: clients, Rank: rand.IntN(max(1, clients))}
}

// prepare keeps what is needed in an outage up to date until the client is closed.
// Nobody else touches c.kept meanwhile.
func (c *Client) prepare() {
	defer c.saveCache(true)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for asked := false; ; {
		select {
		case <-c.ctx.Done():
			return
		case <-timer.C:
		case <-c.found:
			if asked {
				continue // it is asked soon enough
			}
		}
		asked = c.prepareOnce()
		c.saveCache(false)
		timer.Reset(prepareEvery - rand.N(prepareEvery/5))
	}
}

// prepareOnce asks some nodes and says whether one has answered.
func (c *Client) prepareOnce() bool {
	var best *pb.GetFallbackResponse
	var from *node
	share, settled := fallback.Share{}, false
	for _, n := range c.prepareFrom() {
		r, err := c.fallbackOf(n, c.kept.digest, 0)
		if err != nil {
			continue // a node of an older build, or one that has just gone
		}
		if !c.sameCluster(r.GetClusterId()) {
			continue // it has the address of a node that is gone, and policies of its own
		}
		if best == nil || r.GetVersion() > best.GetVersion() {
			best, from = r, n
		}
		if clients := int(r.GetClients()); clients > share.Clients {
			share = fallback.Share{Clients: clients, Rank: int(r.GetRank())}
		}
		settled = settled || r.GetSettled()
	}
	if best == nil {
		return false
	}
	// Nodes that have just started do not know all clients yet.
	if settled || share.Clients > c.kept.share.Clients {
		c.kept.share = share
		c.share.Store(&share)
	}
	if len(best.GetData()) > 0 {
		if err := c.fetchPolicies(from, best); err != nil {
			c.options.logger.Warn("ringlimit: no new policies for an outage", "node", from.addr, "error", err)
		}
	}
	return true
}

// sameCluster says whether a cluster is the one that this client asks, as far as it knows.
func (c *Client) sameCluster(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.view.cluster == "" || c.view.cluster == id
}

// prepareFrom chooses whom to ask: of the nodes that are up the first by address, of those
// alone that the cluster names, so that all clients ask the same ones, whatever addresses
// they were given and however they write them.
func (c *Client) prepareFrom() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	up := slices.DeleteFunc(slices.Clone(c.order), func(n *node) bool { return !n.isUp() })
	if known := slices.DeleteFunc(slices.Clone(up), func(n *node) bool { return !slices.Contains(c.view.nodes, n.addr) }); len(known) > 0 {
		up = known
	}
	slices.SortFunc(up, func(a, b *node) int { return strings.Compare(a.addr, b.addr) })
	return up[:min(len(up), prepareNodes)]
}

func (c *Client) fallbackOf(n *node, digest, offset uint64) (*pb.GetFallbackResponse, error) {
	ctx, cancel := context.WithTimeout(c.ctx, prepareTimeout)
	defer cancel()
	r := &pb.GetFallbackRequest{Session: c.session, Digest: digest, Offset: offset}
	return pb.NewLimiterClient(n.conn).GetFallback(ctx, r, grpc.MaxCallRecvMsgSize(maxResponse))
}

// fetchPolicies reads the rest of a set whose first piece is there, and takes it over.
func (c *Client) fetchPolicies(n *node, r *pb.GetFallbackResponse) error {
	var data []byte
	for digest := r.GetDigest(); ; {
		if r.GetTotal() > maxPolicyBytes {
			return fmt.Errorf("%d bytes of policies, at most %d are kept", r.GetTotal(), maxPolicyBytes)
		}
		if r.GetDigest() != digest || r.GetOffset() != uint64(len(data)) || len(r.GetData()) == 0 {
			return fmt.Errorf("other policies took effect meanwhile")
		}
		if data = append(data, r.GetData()...); uint64(len(data)) >= r.GetTotal() {
			break
		}
		var err error
		if r, err = c.fallbackOf(n, digest, uint64(len(data))); err != nil {
			return err
		}
	}
	k := c.kept
	k.cluster, k.version, k.digest, k.policies = r.GetClusterId(), r.GetVersion(), r.GetDigest(), data
	return c.keep(k)
}

// keep decides by other policies from now on.
func (c *Client) keep(k kept) error {
	set, err := policy.Decode(k.policies)
	if err != nil {
		return err
	}
	rules, err := fallback.Compile(set, c.secret)
	if err != nil {
		return err
	}
	c.kept = k
	c.share.Store(&k.share)
	c.rules.Store(rules)
	c.denials.forget() // the new policies may admit what the old ones did not
	c.wakeClock()      // it may have to look sooner
	return nil
}

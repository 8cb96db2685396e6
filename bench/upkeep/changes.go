package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/client"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// changing is a file of three policies that a request falls under at once, one of
// them in another group than the others: each says in its capacity which change
// made it.
func changing(change int) string {
	return fmt.Sprintf(`home: [tenant]
policies:
  - {id: by-region, match: {}, scope: [region], algorithm: token_bucket, amount: 1000000, window: 1s, burst: %d}
  - {id: by-tenant, match: {}, scope: [tenant], algorithm: token_bucket, amount: 1000000, window: 1s, burst: %d}
  - {id: by-tenant-too, match: {}, scope: [tenant], algorithm: token_bucket, amount: 1000000, window: 2s, burst: %d}
`, 100_000_000+change, 200_000_000+change, 300_000_000+change)
}

// changes is what is known of the changes and of what nodes and callers saw.
type changes struct {
	b        *bench
	mu       sync.Mutex         // guards what follows
	made     map[uint64]int     // version → number of the change
	seen     []map[uint64]int64 // of each node: version → when it had it
	judged   int64
	mixed    []string
	unknown  []seen // of versions whose put has not been answered yet
	over     atomic.Bool
	requests atomic.Int64
	retried  int          // puts
	between  atomic.Int64 // decisions whose limits in two groups are of the versions before and after a change
}

// seen is what one limit of a decision said.
type seen struct {
	policy  string
	version uint64
	limit   uint64
}

// measureChanges changes both policies again and again while callers decide.
func measureChanges(ctx context.Context, b *bench) error {
	c := &changes{b: b, made: map[uint64]int{}, seen: make([]map[uint64]int64, len(b.fleet.Nodes))}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	begun := time.Now()
	sent := map[uint64]int64{}
	errs := make(chan error, len(b.fleet.Nodes)+b.callers)
	var running sync.WaitGroup
	for i, n := range b.fleet.Nodes {
		c.seen[i] = map[uint64]int64{}
		running.Go(func() { errs <- c.follow(ctx, n, c.seen[i], begun) })
	}
	for i := range b.callers {
		running.Go(func() { errs <- c.decide(ctx, i) })
	}
	if err := pause(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	err := c.change(ctx, begun, sent)
	took := time.Since(begun)
	if err == nil {
		err = pause(ctx, 1500*time.Millisecond)
	}
	c.over.Store(true)
	running.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	if err != nil {
		return err
	}
	b.say("  %d changes in %.1f s beside %d decisions of 3 limits in 2 groups by %d callers, no error; %d puts were tried again", b.changes, took.Seconds(), c.requests.Load(), b.callers, c.retried)
	b.say("  in %d decisions a change came between the two groups: each limit is of one version, and the groups differ in theirs", c.between.Load())
	return c.verdict(sent)
}

// change puts the file again and again, each time by another node.
func (c *changes) change(ctx context.Context, begun time.Time, sent map[uint64]int64) error {
	var conns []*grpc.ClientConn
	for _, n := range c.b.fleet.Nodes {
		conn, err := n.Dial()
		if err != nil {
			return err
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	for i := 1; i <= c.b.changes; i++ {
		at := int64(time.Since(begun))
		r, err := c.put(ctx, conns, i)
		if err != nil {
			return fmt.Errorf("change %d: %w", i, err)
		}
		c.mu.Lock()
		c.made[r.GetVersion()] = i
		c.mu.Unlock()
		sent[r.GetVersion()] = at
	}
	return nil
}

// put makes one change, by one node after another until one has done it: on a
// machine that is busy with other things the control group may lose its leader.
func (c *changes) put(ctx context.Context, conns []*grpc.ClientConn, change int) (*pb.PutResponse, error) {
	const tries = 50
	for k := 0; ; k++ {
		g, err := pb.NewPoliciesClient(conns[(change+k)%len(conns)]).PutFile(ctx)
		if err != nil {
			return nil, err
		}
		_ = g.Send(&pb.PutFileRequest{Name: "change.yaml", File: []byte(changing(change)), Author: &pb.Author{Who: "upkeep"}})
		r, err := g.CloseAndRecv()
		switch {
		case err == nil && !r.GetChanged() && k == 0:
			return nil, errors.New("it changed nothing")
		case err == nil:
			return r, nil
		case k == tries:
			return nil, err
		}
		c.retried++
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// follow asks a node over and over which version it has.
func (c *changes) follow(ctx context.Context, n *fleet.Node, has map[uint64]int64, begun time.Time) error {
	conn, err := n.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	last := uint64(0)
	for !c.over.Load() {
		r, err := pb.NewPoliciesClient(conn).Get(ctx, &pb.GetPolicyRequest{Id: "by-tenant"})
		if err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		now, v := int64(time.Since(begun)), r.GetVersion()
		if v < last {
			return fmt.Errorf("node %s went back from version %d to %d", n.Name, last, v)
		}
		if v > last {
			has[v] = now
		}
		last = v
		if err := pause(ctx, time.Millisecond); err != nil {
			return nil
		}
	}
	return nil
}

// decide is one caller. What it sees for its tenant never goes back.
func (c *changes) decide(ctx context.Context, i int) error {
	cl, err := client.New(c.b.fleet.GRPC(), client.NeverDegrade())
	if err != nil {
		return err
	}
	defer cl.Close()
	last := uint64(0)
	for k := 0; !c.over.Load(); k++ {
		d, err := cl.Decide(ctx, client.Request{Tenant: fmt.Sprintf("tenant-%d", i), Region: fmt.Sprintf("region-%d", k%8), Cost: 1})
		if err != nil {
			return fmt.Errorf("caller %d: %w", i, err)
		}
		c.requests.Add(1)
		all := d.All()
		if len(all) != 3 || !d.Allowed {
			return fmt.Errorf("caller %d: %+v, want three limits and to be admitted", i, d)
		}
		if all[1].PolicyVersion != all[2].PolicyVersion {
			return fmt.Errorf("caller %d: a decision of one group by versions %d and %d", i, all[1].PolicyVersion, all[2].PolicyVersion)
		}
		if all[0].PolicyVersion != all[1].PolicyVersion {
			c.between.Add(1)
		}
		if v := all[1].PolicyVersion; v < last {
			return fmt.Errorf("caller %d: version %d after %d", i, v, last)
		}
		last = all[1].PolicyVersion
		c.note(all)
	}
	return nil
}

// note keeps what the limits of a decision said, to be judged at the end.
func (c *changes) note(all []client.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range all {
		c.judged++
		s := seen{a.PolicyID, a.PolicyVersion, a.Limit}
		if change, ok := c.made[s.version]; ok {
			if s.limit != s.capacity(change) {
				c.mixed = append(c.mixed, fmt.Sprint(s))
			}
		} else if s.version != 1 {
			c.unknown = append(c.unknown, s)
		}
	}
}

// capacity is what the change made it.
func (s seen) capacity(change int) uint64 {
	base := map[string]uint64{"by-region": 100_000_000, "by-tenant": 200_000_000, "by-tenant-too": 300_000_000}
	return base[s.policy] + uint64(change)
}

// verdict judges what is left and tells how long changes took to be everywhere.
func (c *changes) verdict(sent map[uint64]int64) error {
	for _, s := range c.unknown {
		if change, ok := c.made[s.version]; !ok || s.limit != s.capacity(change) {
			c.mixed = append(c.mixed, fmt.Sprint(s))
		}
	}
	if len(c.mixed) > 0 {
		return fmt.Errorf("%d limits of no version or of two, such as %s", len(c.mixed), c.mixed[0])
	}
	c.b.say("  %d limits, each with the capacity that its version has; versions never went back on any node or for any caller", c.judged)
	for i, n := range c.b.fleet.Nodes {
		c.b.say("  node %s has a change after %s", n.Name, spread(delays(sent, c.seen[i])))
	}
	return nil
}

// delays are, for each change, the time until the node had it or a newer one.
func delays(sent, has map[uint64]int64) []time.Duration {
	versions := make([]uint64, 0, len(has))
	for v := range has {
		versions = append(versions, v)
	}
	slices.Sort(versions)
	out := make([]time.Duration, 0, len(sent))
	for v, at := range sent {
		i, _ := slices.BinarySearch(versions, v)
		if i == len(versions) {
			out = append(out, time.Hour) // never
			continue
		}
		out = append(out, time.Duration(has[versions[i]]-at))
	}
	slices.Sort(out)
	return out
}

func spread(d []time.Duration) string {
	if len(d) == 0 {
		return "nothing"
	}
	at := func(q float64) time.Duration { return d[int(q*float64(len(d)-1))].Round(100 * time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v, max %v", at(0.5), at(0.99), at(1))
}

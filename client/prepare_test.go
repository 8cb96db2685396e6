package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

// TestClientsOfALargeClusterCountEachOther: whatever nodes they were given, and however they
// write their addresses; also when some of those that count are gone.
func TestClientsOfALargeClusterCountEachOther(t *testing.T) {
	for _, nodes := range []int{3, 16, 40} {
		synctest.Test(t, func(t *testing.T) {
			var addrs []string
			for i := range nodes {
				addrs = append(addrs, fmt.Sprintf("n%02d", i))
			}
			f := newFake(t, addrs...)
			f.tell(`policies: [{id: p, scope: [tenant], amount: 100, window: 1h}]`)
			f.lead(addrs[nodes-1], 2)
			alias := func(ctx context.Context, addr string) (net.Conn, error) {
				var i int
				if _, err := fmt.Sscanf(addr, "alias-%d", &i); err == nil {
					addr = addrs[nodes-i]
				}
				return f.dial(ctx, addr)
			}
			var clients []*Client
			for i := range 4 {
				seeds := []string{addrs[5*i%nodes], addrs[(5*i+1)%nodes], addrs[(5*i+2)%nodes]}
				if i == 3 {
					seeds = []string{"alias-1", "alias-2", "alias-3"} // which come first
				}
				c, err := New(seeds, WithDialer(alias), WithLogger(slog.New(slog.DiscardHandler)))
				if err != nil {
					t.Fatal(err)
				}
				clients = append(clients, c)
			}
			counted := func(when string) {
				t.Helper()
				ranks := map[int]bool{}
				for i, c := range clients {
					s := c.share.Load()
					if s.Clients != len(clients) {
						t.Errorf("%d nodes, %s: client %d counts %d", nodes, when, i, s.Clients)
					}
					ranks[s.Rank] = true
				}
				if len(ranks) != len(clients) {
					t.Errorf("%d nodes, %s: ranks %v", nodes, when, ranks)
				}
			}
			time.Sleep(11 * time.Second)
			counted("at first")
			f.nodes[addrs[0]].kill()
			f.nodes[addrs[1]].kill()
			f.tell(`policies: [{id: p, scope: [tenant], amount: 100, window: 1h}]`) // nobody is counted any more
			time.Sleep(11 * time.Second)
			counted("without two of those that count")
			for _, c := range clients {
				if n := len(c.nodes); nodes == 40 && n > alwaysEager+5 {
					t.Errorf("connected to %d of 40 nodes", n)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
			f.stop()
		})
	}
}

// TestPoliciesOfAnotherClusterAreNotTaken: from a node that took the address of one that is
// gone, however new they are; nor is its number of clients.
func TestPoliciesOfAnotherClusterAreNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "a", "b")
		f.tell(`policies: [{id: p, scope: [tenant], amount: 100, window: 1h}]`)
		set, err := policy.Parse("other.yaml", []byte(`policies: [{id: stranger, scope: [tenant], amount: 1, window: 1h}]`))
		if err != nil {
			t.Fatal(err)
		}
		set.Policies[0].Version = 9
		f.mu.Lock()
		f.nodes["a"].foreign = set.Encode()
		f.mu.Unlock()
		c := f.client()
		time.Sleep(30 * time.Second)
		if _, ok := c.Scope(acme, "stranger"); ok {
			t.Error("the policies of another cluster are taken")
		}
		if _, ok := c.Scope(acme, "p"); !ok || c.kept.cluster != "fake" || c.share.Load().Clients != 1 {
			t.Errorf("policies of %q, %d clients", c.kept.cluster, c.share.Load().Clients)
		}
		// Also those of an own cluster that comes later, as a file of policies may be wrong.
		f.mu.Lock()
		f.nodes["b"].foreign = set.Encode()
		f.mu.Unlock()
		time.Sleep(30 * time.Second)
		if _, ok := c.Scope(acme, "stranger"); ok || c.kept.cluster != "fake" {
			t.Error("the policies of another cluster are taken when nobody else tells any")
		}
		c.Close()
		f.stop()
	})
}

// TestRoutingOfAnotherClusterIsNotLearnt: its nodes are not asked.
func TestRoutingOfAnotherClusterIsNotLearnt(t *testing.T) {
	bubble(t, []string{"a", "b"}, func(t *testing.T, f *fakeCluster, c *Client) {
		before := c.table.Load()
		f.change(func(r *pb.Routing) {
			r.ClusterId, r.Revision, r.Nodes = "another", 9, []string{"x"}
		})
		synctest.Wait()
		if c.table.Load() != before || c.nodes["x"] != nil {
			t.Error("it is learnt")
		}
	})
}

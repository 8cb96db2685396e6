package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/internal/certs"
	"github.com/ringlimit/ringlimit/transport"
)

// vault makes the files of a secure cluster in a bubble.
type vault struct {
	s              *sim
	dir            string
	peers, callers *certs.Authority
	mu             sync.Mutex // held while a certificate and its key are replaced, and while a new client reads them
}

// secureBubble runs a test of a cluster of n nodes, all planes of which are secured.
func secureBubble(t *testing.T, n int, f func(t *testing.T, s *sim, v *vault)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, n)
		defer s.close()
		v := &vault{s: s, dir: t.TempDir()}
		v.peers, v.callers = v.authority("peers"), v.authority("callers")
		v.write("peer-ca.crt", v.peers.Pair().Cert)
		v.write("caller-ca.crt", v.callers.Pair().Cert)
		v.write("gossip.keys", []byte(certs.NewKey()))
		v.client("client", v.callers)
		s.tune = func(c *Config) { c.TLS = v.node(c.Name) }
		f(t, s, v)
	})
}

func (v *vault) path(name string) string { return filepath.Join(v.dir, name) }

func (v *vault) write(name string, data ...[]byte) string {
	v.s.t.Helper()
	var all []byte
	for _, d := range data {
		all = append(append(all, d...), '\n')
	}
	if err := os.WriteFile(v.path(name), all, 0o600); err != nil {
		v.s.t.Fatal(err)
	}
	return v.path(name)
}

func (v *vault) authority(name string) *certs.Authority {
	v.s.t.Helper()
	a, err := certs.NewAuthority(name, time.Now().Add(-time.Hour), time.Now().Add(10000*time.Hour))
	if err != nil {
		v.s.t.Fatal(err)
	}
	return a
}

// issue writes NAME.crt and NAME.key; the times of l are an hour around now unless given.
func (v *vault) issue(name string, a *certs.Authority, l certs.Leaf) {
	v.s.t.Helper()
	if l.From.IsZero() {
		l.From = time.Now().Add(-time.Hour)
	}
	if l.Until.IsZero() {
		l.Until = time.Now().Add(1000 * time.Hour)
	}
	l.Name = name
	p, err := a.Issue(l)
	if err != nil {
		v.s.t.Fatal(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.write(name+".crt", p.Cert)
	v.write(name+".key", p.Key)
}

// peer issues the certificate of a node for links.
func (v *vault) peer(node string, a *certs.Authority) {
	v.issue(node+"-peer", a, certs.Leaf{URI: certs.NodeID(certs.DefaultDomain, node), Server: true, Client: true})
}

// server issues the certificate of a node for callers.
func (v *vault) server(node string, a *certs.Authority) {
	v.issue(node+"-server", a, certs.Leaf{Hosts: []string{node, v.s.net.IP(node).String()}, Server: true})
}

// client issues the certificate of a caller.
func (v *vault) client(name string, a *certs.Authority) {
	v.issue(name, a, certs.Leaf{URI: "spiffe://ringlimit/client/" + name, Client: true})
}

// node issues what a node needs, unless it is there, and returns its files.
func (v *vault) node(name string) TLS {
	if _, err := os.Stat(v.path(name + "-peer.crt")); err != nil {
		v.peer(name, v.peers)
		v.server(name, v.callers)
	}
	return TLS{
		Cert: v.path(name + "-server.crt"), Key: v.path(name + "-server.key"), ClientCA: v.path("caller-ca.crt"),
		PeerCert: v.path(name + "-peer.crt"), PeerKey: v.path(name + "-peer.key"), PeerCA: v.path("peer-ca.crt"),
		GossipKeys: v.path("gossip.keys"),
	}
}

// as are a caller's files.
func (v *vault) as(name string) client.TLS {
	return client.TLS{CA: v.path("caller-ca.crt"), Cert: v.path(name + ".crt"), Key: v.path(name + ".key")}
}

// caller is a client that shows a certificate.
func (v *vault) caller(host, name string) *client.Client {
	v.s.t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.s.dialAs(host, client.NeverDegrade(), client.WithTLS(v.as(name)))
}

func TestSecureClusterFormsAndDecides(t *testing.T) {
	secureBubble(t, 3, func(t *testing.T, s *sim, v *vault) {
		s.boot()
		s.join("d") // by a link, since gRPC lets in callers alone
		s.healthy(5 * time.Minute)
		c := v.caller("client", "client")
		defer c.Close()
		var y tally
		for range 15 {
			y.take(c, 5*time.Second, client.Request{Tenant: "t", Plan: "year"})
		}
		if y.admitted.Load() != 10 || y.failed.Load() != 0 {
			t.Errorf("%d admitted, %d failed: %v", y.admitted.Load(), y.failed.Load(), y.first)
		}
		s.kill("b") // a failover is as quick as without
		began := time.Now()
		s.leader("t")
		for _, tenant := range []string{"u", "v", "w", "x"} {
			y.take(c, 5*time.Second, client.Request{Tenant: tenant, Plan: "year"})
		}
		if took := time.Since(began); took > time.Second || y.failed.Load() != 0 {
			t.Errorf("after a kill: %s, %d failed: %v", took, y.failed.Load(), y.first)
		}
		s.start("b")
		s.healthy(time.Minute)
	})
}

// TestRotationUnderLoad replaces every certificate, both authorities and the key of
// gossip while requests flow, as docs/security.md says: none fails.
func TestRotationUnderLoad(t *testing.T) {
	secureBubble(t, 3, func(t *testing.T, s *sim, v *vault) {
		s.boot()
		c := v.caller("client", "client")
		defer c.Close()
		var y tally
		var stop atomic.Bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; !stop.Load(); i++ {
				y.take(c, 2*time.Second, client.Request{Tenant: string(rune('A' + i%26)), Plan: "burst"})
				if i%100 == 0 { // a client of its own makes new connections all the time
					fresh := v.caller("fresh", "client")
					y.take(fresh, 2*time.Second, client.Request{Tenant: "fresh", Plan: "burst"})
					fresh.Close()
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		pause := func() { time.Sleep(5 * time.Second) }
		pause()
		for _, name := range s.names { // leaves, by the same authorities
			v.peer(name, v.peers)
			v.server(name, v.callers)
		}
		v.client("client", v.callers)
		pause()
		peers, callers := v.authority("peers, new"), v.authority("callers, new")
		v.write("peer-ca.crt", v.peers.Pair().Cert, peers.Pair().Cert)
		v.write("caller-ca.crt", v.callers.Pair().Cert, callers.Pair().Cert)
		pause()
		for _, name := range s.names {
			v.peer(name, peers)
			v.server(name, callers)
			pause()
		}
		v.client("client", callers)
		pause()
		v.write("peer-ca.crt", peers.Pair().Cert)
		v.write("caller-ca.crt", callers.Pair().Cert)
		pause()
		old, err := os.ReadFile(v.path("gossip.keys"))
		if err != nil {
			t.Fatal(err)
		}
		key := []byte(certs.NewKey())
		for _, keys := range [][][]byte{{old, key}, {key, old}, {key}} {
			v.write("gossip.keys", keys...)
			pause()
		}
		stop.Store(true)
		<-done
		if y.failed.Load() != 0 || y.admitted.Load() < 500 {
			t.Errorf("%d admitted, %d failed: %v", y.admitted.Load(), y.failed.Load(), y.first)
		}
		for name, x := range s.nodes {
			if n := x.secrets.peers.Refused() + x.secrets.callers.Refused() + x.secrets.keys.Refused(); n != 0 {
				t.Errorf("%s refused %d changes", name, n)
			}
			for _, other := range s.names {
				if since, up := x.peers.Link(other); !up || other != name && since > 40*time.Second {
					t.Errorf("%s to %s: up %v, for %s, by a certificate of the old authority", name, other, up, since)
				}
			}
			if m := len(x.gossip.Members()); m != 3 {
				t.Errorf("%s sees %d members", name, m)
			}
		}
		s.healthy(time.Minute)
	})
}

// TestExpiryIsAMetric: an operator sees it coming.
func TestExpiryIsAMetric(t *testing.T) {
	secureBubble(t, 1, func(t *testing.T, s *sim, _ *vault) {
		s.boot()
		page := s.nodes["a"].http("GET", "/metrics", "").body
		for _, want := range []string{
			`ringlimit_certificate_not_after_seconds{certificate="own",plane="nodes"} 9.5`,
			`ringlimit_certificate_not_after_seconds{certificate="authority",plane="callers"} 9.8`,
			`ringlimit_secrets_refused_total{plane="gossip"} 0`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("no %s", want)
			}
		}
	})
}

// TestSecureClusterComesBackAsAWhole: after all have restarted none is registered, and
// they let each other in.
func TestSecureClusterComesBackAsAWhole(t *testing.T) {
	secureBubble(t, 3, func(t *testing.T, s *sim, _ *vault) {
		s.keepDirectories()
		s.boot()
		for _, name := range s.names {
			s.kill(name)
		}
		for _, name := range s.names {
			s.start(name)
		}
		s.healthy(2 * time.Minute)
	})
}

// TestANodeAsksForItselfAlone: whoever proves a name is let in under that name, as the
// process that it is, and lets nobody else in, member or not.
func TestANodeAsksForItselfAlone(t *testing.T) {
	secureBubble(t, 1, func(t *testing.T, s *sim, _ *vault) {
		s.boot()
		a := s.nodes["a"]
		for _, from := range []transport.From{{Node: "z", Incarnation: "i"}, a.asFrom(), {Node: "b", Incarnation: "another"}} {
			err := a.tellJoin(t, from, strangersJoin("b"))
			if _, known := a.control.State().Node("b"); known || !errors.Is(err, fault.Conflict) {
				t.Errorf("%s lets b in: %v, %v", from, known, err)
			}
		}
		if _, err := a.Join(t.Context(), strangersJoin("b")); !errors.Is(err, fault.Conflict) {
			t.Errorf("by gRPC: %v", err)
		}
		err := a.tellJoin(t, transport.From{Node: "b", Incarnation: "i"}, strangersJoin("b"))
		if _, known := a.control.State().Node("b"); !known {
			t.Errorf("b is not let in: %v", err)
		}
	})
}

// TestMembersAlonePassOnAJoin, where nobody proves anything: who is no member yet may not
// let another one in.
func TestMembersAlonePassOnAJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, 1)
		defer s.close()
		s.boot()
		a := s.nodes["a"]
		err := a.tellJoin(t, transport.From{Node: "z", Incarnation: "i"}, strangersJoin("b"))
		if _, known := a.control.State().Node("b"); known || !errors.Is(err, fault.NotReady) {
			t.Errorf("z lets b in: %v, %v", known, err)
		}
		err = a.tellJoin(t, a.asFrom(), strangersJoin("b"))
		if _, known := a.control.State().Node("b"); !known {
			t.Errorf("a member cannot pass on what b asks: %v", err)
		}
	})
}

// asFrom is the node as others see who calls.
func (n *Node) asFrom() transport.From {
	return transport.From{Node: n.self.name, Incarnation: n.self.incarnation}
}

// tellJoin is a join that comes by a link.
func (n *Node) tellJoin(t *testing.T, from transport.From, r *pb.JoinRequest) error {
	t.Helper()
	body, err := proto.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.handleCall(t.Context(), from, methodJoin, body)
	return err
}

package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/internal/certs"
	"github.com/ringlimit/ringlimit/internal/simnet"
	"github.com/ringlimit/ringlimit/transport"
)

// intruder shows a certificate, if any, and believes everybody.
type intruder struct{ *tls.Config }

func (i intruder) Server() *tls.Config {
	c := i.Clone()
	c.ClientAuth = tls.RequestClientCert
	return c
}
func (i intruder) Client(string) *tls.Config             { return i.Config }
func (intruder) Check(tls.ConnectionState, string) error { return nil }

// shows is an intruder with a certificate of the vault; "": without one. nil: no TLS at all.
func (v *vault) shows(name, protocol string) *intruder {
	c := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}
	if name != "" {
		pair, err := tls.LoadX509KeyPair(v.path(name+".crt"), v.path(name+".key"))
		if err != nil {
			v.s.t.Fatal(err)
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		c.Certificates = []tls.Certificate{pair}
	}
	return &intruder{c}
}

// tryGRPC takes from a's budget, and asks to be let in as node z.
func (s *sim) tryGRPC(from *simnet.Host, i *intruder) error {
	creds := insecure.NewCredentials()
	if i != nil {
		creds = credentials.NewTLS(i.Config)
	}
	conn, err := grpc.NewClient("passthrough:///"+s.net.IP("a").String()+":7600", grpc.WithTransportCredentials(creds),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return from.Dial(ctx, addr) }))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Second)
	defer cancel()
	if _, err := pb.NewClusterClient(conn).Join(ctx, strangersJoin("z")); err == nil {
		s.t.Error("gRPC let a node in")
	}
	_, err = pb.NewLimiterClient(conn).Decide(ctx, request("victim", "year"))
	return err
}

// tryHTTP does the same, by HTTP.
func (s *sim) tryHTTP(from *simnet.Host, i *intruder) error {
	t := &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return from.Dial(ctx, addr) }}
	defer t.CloseIdleConnections()
	url := "http://"
	if i != nil {
		url, t.TLSClientConfig = "https://", i.Config
	}
	c := http.Client{Transport: t, Timeout: 3 * time.Second}
	refusal := errors.New("refused")
	for _, path := range []string{"GET /healthz", "GET /metrics", "GET /v1/policies", "POST /v1/decisions"} {
		method, path, _ := strings.Cut(path, " ")
		r, err := http.NewRequest(method, url+s.net.IP("a").String()+":7700"+path, strings.NewReader(`{"tenant":"victim","plan":"year"}`))
		if err != nil {
			s.t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if answer, err := c.Do(r); err == nil {
			answer.Body.Close()
			if answer.StatusCode != http.StatusBadRequest { // what HTTP without TLS is told
				refusal = nil
			}
		}
	}
	return refusal
}

func strangersJoin(name string) *pb.JoinRequest {
	return &pb.JoinRequest{Name: name, Directory: "d", Incarnation: "i", Grpc: "x:1", Peer: "x:2", Gossip: "x:3", FormatMax: formatMax}
}

// tryPeer is node b as far as its hello goes: it asks for a link, and by a connection of
// its own to be let in anew.
func (s *sim) tryPeer(from *simnet.Host, i *intruder) error {
	cfg := transport.Config{
		Name: "b", Incarnation: "i", Network: from, Addr: from.Name() + ":7601", Logger: simLogger(from.Name()),
		Resolve: func(node string) (string, bool) { return s.net.IP(node).String() + ":7601", true },
	}
	if i != nil {
		cfg.Secure = i
	}
	p, err := transport.Listen(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	defer func() { cancel(); <-done }()
	p.SetPeers([]string{"a"})
	time.Sleep(2 * time.Second)
	if _, up := p.Link("a"); up {
		return nil
	}
	body, err := proto.Marshal(strangersJoin("b"))
	if err != nil {
		return err
	}
	_, err = p.CallBulk(ctx, "a", methodJoin, body)
	if err != nil && strings.Contains(err.Error(), "b answers") { // it got as far as the control leader
		return nil
	}
	return err
}

// TestIntrudersAreRefused: whoever has no certificate, or one for something else, gets
// nothing at any listener; nothing has changed afterwards, and the cluster goes on.
func TestIntrudersAreRefused(t *testing.T) {
	secureBubble(t, 3, func(t *testing.T, s *sim, v *vault) {
		s.boot()
		s.kill("b") // else its name would be refused to everybody
		other := v.authority("other")
		v.client("stranger", other)
		v.peer("stranger", other) // stranger-peer
		past := certs.Leaf{URI: "spiffe://ringlimit/client/old", Client: true, Until: time.Now().Add(-time.Minute)}
		v.issue("expired", v.callers, past)
		past.URI, past.Server = certs.NodeID(certs.DefaultDomain, "b"), true
		v.issue("expired-peer", v.peers, past)
		v.issue("claims-b", v.callers, certs.Leaf{URI: certs.NodeID(certs.DefaultDomain, "b"), Server: true, Client: true})
		before := s.nodes["a"].control.State()

		callers := []string{"plain", "", "stranger", "expired", "b-peer", "claims-b", "a-server"}
		for _, name := range callers {
			from := s.net.Host("intruder")
			i := v.shows(strings.TrimPrefix(name, "plain"), "h2")
			if name == "plain" {
				i = nil
			}
			if err := s.tryGRPC(from, i); err == nil {
				t.Errorf("gRPC: %q was let in", name)
			}
			if i != nil {
				i = v.shows(name, "http/1.1")
			}
			if err := s.tryHTTP(from, i); err == nil {
				t.Errorf("HTTP: %q was let in", name)
			}
		}
		peers := []string{"plain", "", "stranger-peer", "expired-peer", "client", "claims-b", "a-peer", "c-peer", "b-server"}
		for n, name := range peers {
			i := v.shows(strings.TrimPrefix(name, "plain"), "ringlimit-peer")
			if name == "plain" {
				i = nil
			}
			if err := s.tryPeer(s.net.Host(fmt.Sprint("intruder", n)), i); err == nil {
				t.Errorf("peer: %q was let in", name)
			}
		}
		after := s.nodes["a"].control.State()
		if after.Revision != before.Revision || after.PolicyVersion != before.PolicyVersion {
			t.Errorf("revision %d and policies %d became %d and %d", before.Revision, before.PolicyVersion, after.Revision, after.PolicyVersion)
		}

		// What is refused above is let in with the right certificate.
		from := s.net.Host("friend")
		if err := s.tryGRPC(from, v.shows("client", "h2")); err != nil {
			t.Errorf("gRPC: a caller: %v", err)
		}
		if err := s.tryHTTP(from, v.shows("client", "http/1.1")); err != nil {
			t.Errorf("HTTP: a caller: %v", err)
		}
		if err := s.tryPeer(from, v.shows("b-peer", "ringlimit-peer")); err != nil {
			t.Errorf("peer: node b: %v", err)
		}
		d := s.nodes["a"].take(t.Context(), request("victim", "year")).GetDecision()
		if want := uint64(10 - 3); d.GetRemaining() != want {
			t.Errorf("%d left, want %d: a caller's two and this one", d.GetRemaining(), want)
		}
	})
}

// TestStrangersNeverJoin: a whole node that lacks one thing learns of nobody and is
// known to nobody, and does not make a cluster either.
func TestStrangersNeverJoin(t *testing.T) {
	for name, change := range map[string]func(*vault, *TLS){
		"plain": func(_ *vault, f *TLS) { *f = TLS{} },
		"another authority": func(v *vault, f *TLS) {
			other := v.authority("other")
			v.peer("x", other)
			f.PeerCA = v.write("other-ca.crt", other.Pair().Cert)
		},
		"the callers' authority": func(v *vault, f *TLS) { v.peer("x", v.callers); f.PeerCA = f.ClientCA },
		"another key of gossip":  func(v *vault, f *TLS) { f.GossipKeys = v.write("other.keys", []byte(certs.NewKey())) },
		"gossip without a key":   func(_ *vault, f *TLS) { f.GossipKeys = "" },
		"another trust domain": func(v *vault, f *TLS) {
			v.issue("x-peer", v.peers, certs.Leaf{URI: certs.NodeID("elsewhere", "x"), Server: true, Client: true})
			f.TrustDomain = "elsewhere"
		},
	} {
		t.Run(name, func(t *testing.T) {
			secureBubble(t, 1, func(t *testing.T, s *sim, v *vault) {
				s.boot()
				revision := s.nodes["a"].control.State().Revision
				files := v.node("x")
				change(v, &files)
				s.tune = func(c *Config) { c.TLS = files }
				s.join("x")
				time.Sleep(30 * time.Second)
				if x := s.nodes["x"]; x.registered() || x.clusterID() != "" || x.control.State().Policies != nil {
					t.Error("it joined, or knows a cluster or a policy")
				}
				a := s.nodes["a"].control.State()
				if _, known := a.Node("x"); known || a.Revision != revision {
					t.Errorf("the cluster knows it, or changed from revision %d to %d", revision, a.Revision)
				}
			})
		})
	}
}

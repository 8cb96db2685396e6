package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ringlimit/ringlimit/internal/certs"
	"github.com/ringlimit/ringlimit/transport"
)

// TLS are the files that a node proves itself by, and checks others by. They are read
// again when they change. A plane without files is plain.
type TLS struct {
	Cert, Key string // shown to callers, by gRPC and HTTP
	ClientCA  string // authorities of callers' certificates; empty: callers need none
	// PeerCert names the node by the URI spiffe://TrustDomain/node/NAME; PeerCA are the
	// authorities of all nodes' certificates.
	PeerCert, PeerKey, PeerCA string
	TrustDomain               string // empty: "ringlimit"
	GossipKeys                string // one key in base64 a line: the first encrypts, each decrypts
}

// validate says which files are missing beside those given.
func (t *TLS) validate() error {
	switch {
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("--tls-cert and --tls-key: give both or none")
	case t.ClientCA != "" && t.Cert == "":
		return errors.New("--tls-client-ca: give --tls-cert and --tls-key too, without them callers are not asked for a certificate")
	case (t.PeerCert == "") != (t.PeerKey == "") || (t.PeerCert == "") != (t.PeerCA == ""):
		return errors.New("--peer-tls-cert, --peer-tls-key and --peer-tls-ca: give all three or none")
	case t.Cert != "" && t.PeerCert == "":
		return errors.New("--tls-cert without --peer-tls-cert: give nodes certificates too, else they would join by --grpc, where only callers are let in")
	}
	return nil
}

// secrets are what the files hold; nil: there are no such files.
type secrets struct {
	peers, callers *certs.Store
	keys           *certs.Keys
	renewed        signal // fires when peers has other files
}

// openSecrets reads the files. The errors name flag and file.
func (n *Node) openSecrets() (err error) {
	t := n.cfg.TLS
	if t.PeerCert != "" {
		n.secrets.peers, err = certs.Open(certs.Config{
			Plane: "nodes", Files: certs.Files{Cert: t.PeerCert, Key: t.PeerKey, CA: t.PeerCA},
			Domain: t.TrustDomain, Node: n.self.name, Changed: n.secrets.renewed.fire, Logger: n.log,
		})
		if err != nil {
			return fmt.Errorf("--peer-tls-cert, --peer-tls-key, --peer-tls-ca: %w", err)
		}
	}
	if t.Cert != "" {
		n.secrets.callers, err = certs.Open(certs.Config{
			Plane: "callers", Files: certs.Files{Cert: t.Cert, Key: t.Key, CA: t.ClientCA}, Logger: n.log,
		})
		if err != nil {
			return fmt.Errorf("--tls-cert, --tls-key, --tls-client-ca: %w", err)
		}
	}
	if t.GossipKeys != "" {
		if n.secrets.keys, err = certs.OpenKeys(t.GossipKeys, n.log); err != nil {
			return fmt.Errorf("--gossip-keys: %w", err)
		}
		n.secrets.keys.Changed = func(keys [][]byte) error { return n.gossip.SetKeys(keys) }
	}
	return nil
}

// run reads the files again when they change, until ctx ends.
func (s *secrets) run(ctx context.Context, peers *transport.Peers) error {
	var wait sync.WaitGroup
	if s.peers != nil {
		wait.Go(func() { _ = s.peers.Run(ctx) }) // its error is ctx's
		wait.Go(func() { s.recheck(ctx, peers) })
	}
	if s.callers != nil {
		wait.Go(func() { _ = s.callers.Run(ctx) })
	}
	if s.keys != nil {
		wait.Go(func() { _ = s.keys.Run(ctx) })
	}
	wait.Wait()
	return nil
}

// recheck ends links by certificates that are not believed any more.
func (s *secrets) recheck(ctx context.Context, peers *transport.Peers) {
	for {
		next := s.renewed.wait()
		peers.Recheck(ctx)
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// links is what links prove themselves by; nil: nothing.
func (s *secrets) links() transport.Secure {
	if s.peers == nil {
		return nil
	}
	return s.peers
}

// gossipKeys are those in use; nil: gossip is plain.
func (s *secrets) gossipKeys() [][]byte {
	if s.keys == nil {
		return nil
	}
	return s.keys.List()
}

// handshakeTimeout is how long a caller may take for TLS and the first bytes of HTTP/2.
const handshakeTimeout = 5 * time.Second

// grpcOptions makes callers of gRPC prove themselves.
func (s *secrets) grpcOptions() []grpc.ServerOption {
	if s.callers == nil {
		return nil
	}
	return []grpc.ServerOption{
		grpc.Creds(credentials.NewTLS(s.callers.ForCallers("h2"))), grpc.ConnectionTimeout(handshakeTimeout),
	}
}

// serveHTTP serves until srv is closed. Handshakes have the time that headers have.
func (s *secrets) serveHTTP(srv *http.Server, ln net.Listener) error {
	if s.callers == nil {
		return srv.Serve(ln)
	}
	return srv.ServeTLS(ln, "", "") // the certificate is that of srv.TLSConfig
}

// httpConfig is the TLS of HTTP; nil: none.
func (s *secrets) httpConfig() *tls.Config {
	if s.callers == nil {
		return nil
	}
	return s.callers.ForCallers("h2", "http/1.1")
}

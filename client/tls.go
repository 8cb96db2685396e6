package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc/credentials"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/internal/pemfile"
)

// TLS are the PEM files of secure connections to nodes. They are read at each new
// connection, so they can be replaced while the client runs; if they cannot be used
// then, what was read before is.
type TLS struct {
	CA         string // authorities of the nodes' certificates; empty: those of the system
	Cert, Key  string // what this client shows, for nodes that ask for it; empty: nothing
	ServerName string // that nodes' certificates must be for; empty: the host of each address
}

// WithTLS secures connections: TLS 1.3, without resumption. New fails if a file cannot be used.
func WithTLS(files TLS) Option {
	return func(o *options) { o.tls = &files }
}

// secure reads the files of WithTLS.
func (c *Client) secure() (err error) {
	if c.options.tls == nil {
		return nil
	}
	if c.options.creds, err = c.options.tls.Credentials(c.options.logger); err != nil {
		return fault.New(fault.InvalidArgument, "TLS: %v", err)
	}
	return nil
}

// Credentials are for connections that are made by gRPC itself. log is told when changed
// files cannot be used; nil: slog.Default.
func (t TLS) Credentials(log *slog.Logger) (credentials.TransportCredentials, error) {
	f := &fileCredentials{files: t, log: cmp.Or(log, slog.Default())}
	var err error
	f.last, err = t.config()
	return f, err
}

// config reads the files.
func (t TLS) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a certificate and its key: give both or none")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with the key %s: %w", t.Cert, t.Key, err)
		}
		// Whatever authorities the node names: it says better than this side what is wrong.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	if t.CA != "" {
		var err error
		if c.RootCAs, err = authorities(t.CA); err != nil {
			return nil, fmt.Errorf("authorities: %w", err)
		}
	}
	return c, nil
}

// authorities reads a file of certificates: all of them or none.
func authorities(path string) (*x509.CertPool, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	blocks, err := pemfile.Blocks(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", path)
	}
	pool := x509.NewCertPool()
	for i, b := range blocks {
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s: block %d is a %s: want certificates of authorities alone", path, i+1, b.Type)
		}
		ca, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: block %d: %w", path, i+1, err)
		}
		pool.AddCert(ca)
	}
	return pool, nil
}

// fileCredentials are credentials by files that may change.
type fileCredentials struct {
	files TLS
	log   *slog.Logger

	mu   sync.Mutex  // guards last
	last *tls.Config // read last without an error
}

func (f *fileCredentials) now() *tls.Config {
	c, err := f.files.config()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.log.Warn("ringlimit: changed files cannot be used, those read before are", "error", err)
		return f.last
	}
	f.last = c
	return c
}

func (f *fileCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(f.now()).ClientHandshake(ctx, cmp.Or(f.files.ServerName, authority), conn)
}

func (f *fileCredentials) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a client's")
}

func (f *fileCredentials) Info() credentials.ProtocolInfo {
	return credentials.NewTLS(&tls.Config{ServerName: f.files.ServerName}).Info()
}

func (f *fileCredentials) Clone() credentials.TransportCredentials { return f }

// OverrideServerName is of an interface that gRPC itself does not use any more.
func (f *fileCredentials) OverrideServerName(string) error {
	return errors.New("give TLS.ServerName instead")
}

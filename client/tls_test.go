package client

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/ringlimit/ringlimit/api/fault"
)

// signer is an authority, with which the test makes files.
type signer struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newSigner(t *testing.T, dir, name string) *signer {
	s := &signer{t: t, dir: dir}
	s.cert, s.key = s.make(name, &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return s
}

// make writes NAME.crt and NAME.key; by itself if the signer is not complete yet.
func (s *signer) make(name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	c.SerialNumber, _ = rand.Int(rand.Reader, big.NewInt(1<<62))
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := s.cert, s.key
	if parent == nil {
		parent, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), by)
	if err != nil {
		s.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	s.write(name+".key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	return parsed, key
}

func (s *signer) write(name string, data []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// leaf makes a certificate of the name and serial number and returns the number.
func (s *signer) leaf(name string, usage x509.ExtKeyUsage, hosts ...string) string {
	c, _ := s.make(name, &x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: hosts, ExtKeyUsage: []x509.ExtKeyUsage{usage}})
	return c.SerialNumber.String()
}

// shake is one handshake of credentials with a server that asks for a certificate; it
// returns the number of the one that was shown.
func shake(t *testing.T, creds credentials.TransportCredentials, server *tls.Config) (shown string, err error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string, 1)
	go func() {
		s := tls.Server(b, server)
		shown := ""
		if s.Handshake() == nil && len(s.ConnectionState().PeerCertificates) > 0 {
			shown = s.ConnectionState().PeerCertificates[0].SerialNumber.String()
		}
		b.Close()
		done <- shown
	}()
	_, _, err = creds.ClientHandshake(t.Context(), "node.example:7600", a)
	a.Close()
	return <-done, err
}

func TestTLSFilesAreReadAtEachConnection(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	ca := newSigner(t, dir, "ca")
	ca.leaf("server", x509.ExtKeyUsageServerAuth, "node.example")
	server := func() *tls.Config {
		pair, err := tls.LoadX509KeyPair(at("server.crt"), at("server.key"))
		if err != nil {
			t.Fatal(err)
		}
		return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, NextProtos: []string{"h2"}}
	}
	first := ca.leaf("client", x509.ExtKeyUsageClientAuth)
	files := TLS{CA: at("ca.crt"), Cert: at("client.crt"), Key: at("client.key")}
	creds, err := files.Credentials(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	try := func(when, want string) {
		t.Helper()
		if shown, err := shake(t, creds, server()); err != nil || shown != want {
			t.Errorf("%s: shown %s, want %s; %v", when, shown, want, err)
		}
	}
	try("at first", first)
	second := ca.leaf("client", x509.ExtKeyUsageClientAuth)
	try("replaced", second)
	ca.write("client.key", []byte("half of it"))
	try("a key that is no key", second)
	third := ca.leaf("client", x509.ExtKeyUsageClientAuth)
	try("mended", third)

	other := newSigner(t, t.TempDir(), "other")
	otherCA, err := os.ReadFile(filepath.Join(other.dir, "other.crt"))
	if err != nil {
		t.Fatal(err)
	}
	ca.write("ca.crt", otherCA)
	if _, err := shake(t, creds, server()); err == nil {
		t.Error("a node of an authority that is not believed any more was reached")
	}
	ca.leaf("server", x509.ExtKeyUsageServerAuth, "elsewhere.example")
	ca.write("ca.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}))
	if _, err := shake(t, creds, server()); err == nil {
		t.Error("a node was reached whose certificate is for another host")
	}
	files.ServerName = "elsewhere.example"
	if creds, err = files.Credentials(nil); err != nil {
		t.Fatal(err)
	}
	try("under the name given", third)
	old := server()
	old.MaxVersion = tls.VersionTLS12
	if _, err := shake(t, creds, old); err == nil {
		t.Error("TLS 1.2 was spoken")
	}
}

func TestWithTLSNamesBadFiles(t *testing.T) {
	dir := t.TempDir()
	ca := newSigner(t, dir, "ca")
	ca.write("junk", []byte("nothing"))
	whole := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw})
	ca.write("cut", append(whole, whole[:100]...))
	ca.write("bad", append(whole, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")})...))
	ca.write("mixed", append(whole, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")})...))
	for _, files := range []TLS{
		{CA: filepath.Join(dir, "none")},
		{CA: filepath.Join(dir, "junk")},
		{CA: filepath.Join(dir, "cut")},
		{CA: filepath.Join(dir, "bad")},
		{CA: filepath.Join(dir, "mixed")},
		{Cert: filepath.Join(dir, "ca.crt")},
		{Cert: filepath.Join(dir, "ca.crt"), Key: filepath.Join(dir, "junk")},
	} {
		if c, err := New([]string{"127.0.0.1:1"}, WithTLS(files)); !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("%+v: %v", files, err)
			c.Close()
		}
	}
}

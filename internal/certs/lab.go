package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"time"
)

// Authority signs certificates: a small one for a laboratory, whose key lies in a file.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pair Pair
}

// Pair is a certificate and its key in PEM form.
type Pair struct{ Cert, Key []byte }

// Leaf says what a certificate is for.
type Leaf struct {
	Name           string   // common name
	URI            string   // identity; empty: none
	Hosts          []string // names and IP addresses it serves under
	Server, Client bool     // what it may be shown as
	From, Until    time.Time
}

// NewAuthority makes one, with a new key.
func NewAuthority(name string, from, until time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	a := &Authority{key: key, cert: &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}}
	if a.pair, err = a.sign(a.cert, key); err != nil {
		return nil, err
	}
	return ReadAuthority(a.pair)
}

// ReadAuthority takes up one that was made before.
func ReadAuthority(p Pair) (*Authority, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return nil, errors.New("is not the certificate and key of an authority")
	}
	return &Authority{cert: pair.Leaf, key: key, pair: p}, nil
}

// Pair returns the authority's own certificate and key.
func (a *Authority) Pair() Pair { return a.pair }

// Issue makes a certificate with a new key.
func (a *Authority) Issue(l Leaf) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	c := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: l.Name}, NotBefore: l.From, NotAfter: l.Until,
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	if l.Server {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if l.Client {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	if l.URI != "" {
		u, err := url.Parse(l.URI)
		if err != nil {
			return Pair{}, err
		}
		c.URIs = []*url.URL{u}
	}
	for _, h := range l.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	return a.sign(c, key)
}

// sign signs c with the authority's key; key is that of c.
func (a *Authority) sign(c *x509.Certificate, key crypto.Signer) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate of %s: %w", c.Subject.CommonName, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, nil
}

func serial() *big.Int {
	n, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126)) // never fails
	return n.Add(n, big.NewInt(1))
}

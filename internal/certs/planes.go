package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
)

// Each connection gets a tls.Config of its own, so that it is checked by what the files
// held when it began.

// config is what all planes have in common.
func (s *Store) config(protocols ...string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, NextProtos: protocols, Time: s.now,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &s.cur.Load().cert, nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &s.cur.Load().cert, nil },
	}
}

// server is a configuration whose authorities for the other side's certificate are
// those of the moment; without any, none is asked for.
func (s *Store) server(accept func(tls.ConnectionState) error, protocols ...string) *tls.Config {
	c := s.config(protocols...)
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := s.config(protocols...)
		if pool := s.cur.Load().pool; pool != nil {
			c.ClientAuth, c.ClientCAs, c.VerifyConnection = tls.RequireAndVerifyClientCert, pool, accept
		}
		return c, nil
	}
	return c
}

// ForCallers is for a listener that callers connect to; protocols are those of ALPN. A
// certificate that names a node is refused, whoever signed it: nodes talk to each other
// elsewhere, and theirs must not be of use to decide.
func (s *Store) ForCallers(protocols ...string) *tls.Config {
	return s.server(func(state tls.ConnectionState) error {
		if id, ok := nodeOf(state.PeerCertificates[0]); ok {
			return fmt.Errorf("the certificate is that of a node (%s), not of a caller", id)
		}
		return nil
	}, protocols...)
}

// peerProtocol is the ALPN of links between nodes: a certificate that is good there and
// at another service of the same authority must not let one stand for the other.
const peerProtocol = "ringlimit-peer"

// Server is for links that other nodes make. Which node it is Check says, once that
// node has said its name.
func (s *Store) Server() *tls.Config { return s.server(nil, peerProtocol) }

// Client is for a link to one node: whoever is not that node is refused.
func (s *Store) Client(node string) *tls.Config {
	c := s.config(peerProtocol)
	c.InsecureSkipVerify = true // names of nodes are no host names: VerifyConnection does all of it
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if state.NegotiatedProtocol != peerProtocol {
			return errors.New("the other side is no node")
		}
		if err := s.verify(state.PeerCertificates, x509.ExtKeyUsageServerAuth); err != nil {
			return err
		}
		return s.names(state.PeerCertificates[0], node)
	}
	return c
}

// Check says whether the other side of a link is that node, by the authorities of the
// moment. It is for the side that was called, and for links that have stood for a while.
func (s *Store) Check(state tls.ConnectionState, node string) error {
	if err := s.verify(state.PeerCertificates, x509.ExtKeyUsageAny); err != nil {
		return err
	}
	return s.names(state.PeerCertificates[0], node)
}

// DefaultDomain is the trust domain of node names unless another is configured.
const DefaultDomain = "ringlimit"

// NodeID is the URI by which a certificate names a node: spiffe://DOMAIN/node/NAME.
func NodeID(domain, node string) string { return "spiffe://" + domain + nodePath + node }

const nodePath = "/node/"

// names checks that a certificate bears the name of a node: as its only URI, for who
// bears two names could be taken for either. Host names do not count: they are not
// unlike in "A" and "a", may have wildcards, and are given away by others.
func (s *Store) names(leaf *x509.Certificate, node string) error {
	want := NodeID(s.cfg.Domain, node)
	if len(leaf.URIs) == 1 && leaf.URIs[0].String() == want {
		return nil
	}
	var has []string
	for _, u := range leaf.URIs {
		has = append(has, u.String())
	}
	if has == nil {
		return fmt.Errorf("the certificate of %q names no node: want the URI %s", leaf.Subject.CommonName, want)
	}
	return fmt.Errorf("the certificate names %s: want the URI %s and no other", strings.Join(has, " and "), want)
}

// nodeOf returns the URI of a certificate that names a node, of whatever domain.
func nodeOf(leaf *x509.Certificate) (id string, ok bool) {
	for _, u := range leaf.URIs {
		if u.Scheme == "spiffe" && strings.HasPrefix(u.Path, nodePath) {
			return u.String(), true
		}
	}
	return "", false
}

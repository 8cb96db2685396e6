// Package certs holds what a node proves itself by: certificates with their keys, the
// authorities it believes, and the keys of gossip. All of it is read from files and
// read again when they change, so that it can be replaced while the node serves.
//
// There is one Store for each plane, that is for each kind of others that a node talks
// to:
//
//	nodes    both sides show a certificate of one authority that names the node
//	callers  the node shows one; callers too, if an authority for theirs is given
//
// A file that is bad changes nothing: what was read last stays in use, and the log and
// a counter say so. TLS is 1.3 alone, and no session is resumed: a resumed one would
// not be checked against the authorities of the moment.
package certs

import (
	"cmp"
	"crypto/x509"
	"log/slog"
	"sync/atomic"
	"time"
)

// Files are PEM files: a certificate with its chain, its key, and the authorities that
// the other side's certificate must come from.
type Files struct{ Cert, Key, CA string }

// Config says what a Store reads.
type Config struct {
	Plane string // "nodes" or "callers", for errors, logs and metrics
	Files
	// Domain is the trust domain of node names, see NodeID; empty: DefaultDomain.
	Domain string
	// Node is the own node's name. A certificate of the plane of nodes must bear it and be
	// of the authorities of CA; empty on other planes, whose two may have nothing in common.
	Node    string
	Now     func() time.Time // nil: time.Now
	Changed func()           // told after new files were taken over, by the goroutine of Run; nil: nobody
	Logger  *slog.Logger     // nil: slog.Default
}

// Store is the certificate, key and authorities of one plane. All methods may be called
// by any goroutine at any time; Run once.
type Store struct {
	cfg   Config
	files *watched
	now   func() time.Time
	cur   atomic.Pointer[material] // never nil
}

// Open reads the files. The error names the file at fault and what is wrong with it.
func Open(cfg Config) (*Store, error) {
	s := &Store{cfg: cfg, now: cfg.Now}
	s.cfg.Domain = cmp.Or(cfg.Domain, DefaultDomain)
	if s.now == nil {
		s.now = time.Now
	}
	s.files = &watched{
		what: "certificates of " + cfg.Plane, paths: []string{cfg.Cert, cfg.Key, cfg.CA},
		take: s.take, tell: func() []any { return []any{"authorities", len(s.cur.Load().authorities)} },
		log: cmp.Or(cfg.Logger, slog.Default()),
	}
	if err := s.files.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// take makes what the files hold the material in use, or says why it cannot be.
func (s *Store) take(contents [][]byte) error {
	m, err := parse(s.cfg.Files, contents)
	if err != nil {
		return err
	}
	if err := s.judge(m); err != nil {
		return err
	}
	first := s.cur.Swap(m) == nil
	if !first && s.cfg.Changed != nil {
		s.cfg.Changed()
	}
	return nil
}

// Plane returns the plane's name.
func (s *Store) Plane() string { return s.cfg.Plane }

// NotAfter returns when the own certificate expires, and the first of the authorities
// to do so; authority is zero where there is none.
func (s *Store) NotAfter() (own, authority time.Time) {
	m := s.cur.Load()
	for _, ca := range m.authorities {
		if authority.IsZero() || ca.NotAfter.Before(authority) {
			authority = ca.NotAfter
		}
	}
	return m.leaf().NotAfter, authority
}

// Refused returns how often changed files were not taken over, since Open.
func (s *Store) Refused() int64 { return s.files.refused.Load() }

// verify checks a chain that the other side showed against the authorities of the moment.
func (s *Store) verify(chain []*x509.Certificate, usage x509.ExtKeyUsage) error {
	return s.cur.Load().verify(chain, usage, s.now())
}

package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/internal/pemfile"
)

// material is what the files of a Store held at one time. It never changes.
type material struct {
	cert        tls.Certificate
	authorities []*x509.Certificate
	pool        *x509.CertPool // of authorities; nil: there are none
}

func (m *material) leaf() *x509.Certificate { return m.cert.Leaf }

// parse reads certificate, key and authorities. Errors name the file.
func parse(f Files, contents [][]byte) (*material, error) {
	if _, err := pemfile.Blocks(contents[0]); err != nil { // else a chain would be shown in part
		return nil, fmt.Errorf("%s: %w", f.Cert, err)
	}
	cert, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		return nil, fmt.Errorf("%s with the key %s: %w", f.Cert, f.Key, err)
	}
	m := &material{cert: cert}
	if f.CA == "" {
		return m, nil
	}
	m.authorities, err = parseAuthorities(contents[2])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.CA, err)
	}
	m.pool = x509.NewCertPool()
	for _, ca := range m.authorities {
		m.pool.AddCert(ca)
	}
	return m, nil
}

// parseAuthorities reads a file of one or more certificates, each of an authority: a
// certificate that may sign none would be believed for itself, whatever else it is for.
func parseAuthorities(data []byte) ([]*x509.Certificate, error) {
	blocks, err := pemfile.Blocks(data)
	if err != nil {
		return nil, err
	}
	var all []*x509.Certificate
	for i, block := range blocks {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("holds a %s: want certificates of authorities alone", block.Type)
		}
		ca, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i+1, err)
		}
		if !ca.IsCA {
			return nil, fmt.Errorf("the certificate of %q is not one of an authority", ca.Subject.CommonName)
		}
		all = append(all, ca)
	}
	if len(all) == 0 {
		return nil, errors.New("holds no certificate in PEM form")
	}
	return all, nil
}

// verify checks that a chain, the leaf first, leads to an authority.
func (m *material) verify(chain []*x509.Certificate, usage x509.ExtKeyUsage, now time.Time) error {
	switch {
	case len(chain) == 0:
		return errors.New("no certificate was shown")
	case m.pool == nil:
		return errors.New("no authority is known")
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: m.pool, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage},
	})
	return err
}

// chain returns the own certificates, the leaf first.
func (m *material) chain() ([]*x509.Certificate, error) {
	all := []*x509.Certificate{m.leaf()}
	for _, der := range m.cert.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// judge says why material of the own files must not be used: others would refuse it.
func (s *Store) judge(m *material) error {
	leaf, now := m.leaf(), s.now()
	switch {
	case now.After(leaf.NotAfter):
		return fmt.Errorf("%s expired at %s", s.cfg.Cert, leaf.NotAfter.Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("%s is not valid before %s; is the clock right?", s.cfg.Cert, leaf.NotBefore.Format(time.RFC3339))
	case s.cfg.Node == "":
		return nil
	}
	chain, err := m.chain()
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		if err == nil {
			err = m.verify(chain, usage, now)
		}
	}
	if err == nil {
		err = s.names(leaf, s.cfg.Node)
	}
	if err != nil {
		return fmt.Errorf("%s: other nodes would refuse it: %w", s.cfg.Cert, err)
	}
	return nil
}

package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lab makes certificates and files for a test.
type lab struct {
	t   *testing.T
	dir string
	now time.Time
}

func newLab(t *testing.T) *lab { return &lab{t, t.TempDir(), time.Now()} }

func (l *lab) authority(name string) *Authority {
	l.t.Helper()
	a, err := NewAuthority(name, l.now.Add(-time.Hour), l.now.Add(1000*time.Hour))
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

func (l *lab) issue(a *Authority, leaf Leaf) Pair {
	l.t.Helper()
	if leaf.From.IsZero() {
		leaf.From = l.now.Add(-time.Hour)
	}
	if leaf.Until.IsZero() {
		leaf.Until = l.now.Add(100 * time.Hour)
	}
	p, err := a.Issue(leaf)
	if err != nil {
		l.t.Fatal(err)
	}
	return p
}

func (l *lab) node(a *Authority, name string) Pair {
	l.t.Helper()
	return l.issue(a, Leaf{Name: name, URI: NodeID(DefaultDomain, name), Server: true, Client: true})
}

func (l *lab) write(name string, data ...[]byte) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	var all []byte
	for _, d := range data {
		all = append(all, d...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

func (l *lab) files(name string, p Pair, authorities ...*Authority) Files {
	l.t.Helper()
	f := Files{Cert: l.write(name+".crt", p.Cert), Key: l.write(name+".key", p.Key)}
	var pems [][]byte
	for _, a := range authorities {
		pems = append(pems, a.Pair().Cert)
	}
	if pems != nil {
		f.CA = l.write(name+"-ca.crt", pems...)
	}
	return f
}

func (l *lab) store(node string, f Files) *Store {
	l.t.Helper()
	s, err := Open(Config{Plane: "nodes", Files: f, Node: node, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// handshake returns what the two sides of a connection say to each other's proof.
func handshake(t *testing.T, client, server *tls.Config) (cs, ss tls.ConnectionState, clientErr, serverErr error) {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	var wait sync.WaitGroup
	wait.Go(func() {
		s := tls.Server(b, server)
		if serverErr = s.Handshake(); serverErr == nil {
			_, serverErr = s.Write([]byte("x"))
		}
		ss = s.ConnectionState()
		b.Close()
	})
	c := tls.Client(a, client)
	if clientErr = c.Handshake(); clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1)) // TLS 1.3: only now it knows what the server thinks of it
	}
	cs = c.ConnectionState()
	a.Close()
	wait.Wait()
	return cs, ss, clientErr, serverErr
}

func TestNodesProveTheirNames(t *testing.T) {
	l := newLab(t)
	ca, other := l.authority("peers"), l.authority("others")
	server := l.store("a", l.files("a", l.node(ca, "a"), ca))
	plain := func(p Pair) *tls.Config { // a client that believes anybody
		c := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{peerProtocol}}
		if p.Cert != nil {
			pair, err := tls.X509KeyPair(p.Cert, p.Key)
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		return c
	}
	cases := map[string]struct {
		client *tls.Config
		claims string
		ok     bool
	}{
		"itself":             {plain(l.node(ca, "b")), "b", true},
		"another node":       {plain(l.node(ca, "c")), "b", false},
		"no certificate":     {plain(Pair{}), "b", false},
		"another authority":  {plain(l.node(other, "b")), "b", false},
		"expired":            {plain(l.issue(ca, Leaf{URI: NodeID(DefaultDomain, "b"), Client: true, Until: l.now.Add(-time.Minute)})), "b", false},
		"not yet valid":      {plain(l.issue(ca, Leaf{URI: NodeID(DefaultDomain, "b"), Client: true, From: l.now.Add(time.Minute)})), "b", false},
		"for servers only":   {plain(l.issue(ca, Leaf{URI: NodeID(DefaultDomain, "b"), Server: true})), "b", false},
		"a host name":        {plain(l.issue(ca, Leaf{Name: "b", Hosts: []string{"b"}, Client: true})), "b", false},
		"another domain":     {plain(l.issue(ca, Leaf{URI: NodeID("elsewhere", "b"), Client: true})), "b", false},
		"in other letters":   {plain(l.node(ca, "B")), "b", false},
		"the authority's":    {plain(ca.Pair()), "b", false},
		"an old TLS version": {&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}, "b", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, state, _, err := handshake(t, c.client, server.Server())
			if err == nil {
				err = server.Check(state, c.claims)
			}
			if (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOnlyTheNodeMeantIsReached(t *testing.T) {
	l := newLab(t)
	ca, other := l.authority("peers"), l.authority("others")
	client := l.store("a", l.files("a", l.node(ca, "a"), ca))
	for name, c := range map[string]struct {
		server Files
		ok     bool
	}{
		"itself":            {l.files("b", l.node(ca, "b"), ca), true},
		"another node":      {l.files("c", l.node(ca, "c"), ca), false},
		"another authority": {l.files("x", l.node(other, "b"), ca), false},
		"for clients only":  {l.files("y", l.issue(ca, Leaf{URI: NodeID(DefaultDomain, "b"), Client: true}), ca), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err, _ := handshake(t, client.Client("b"), l.store("", c.server).Server())
			if (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	callers := l.store("", l.files("z", l.node(ca, "b"), ca)).ForCallers("h2")
	if _, _, err, _ := handshake(t, client.Client("b"), callers); err == nil {
		t.Error("a listener for callers passed for one of nodes")
	}
}

func TestCallersProveThatTheyAreNoNodes(t *testing.T) {
	l := newLab(t)
	ca := l.authority("everybody")
	server := l.store("", l.files("s", l.issue(ca, Leaf{Hosts: []string{"localhost"}, Server: true}), ca))
	client := func(p Pair) *tls.Config {
		pair, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(ca.Pair().Cert)
		return &tls.Config{RootCAs: pool, ServerName: "localhost", Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}}
	}
	state, _, clientErr, err := handshake(t, client(l.issue(ca, Leaf{Name: "c", Client: true})), server.ForCallers("h2"))
	if err != nil || clientErr != nil || state.NegotiatedProtocol != "h2" || state.Version != tls.VersionTLS13 {
		t.Errorf("a caller: %v, %v, %q", err, clientErr, state.NegotiatedProtocol)
	}
	if _, _, _, err := handshake(t, client(l.node(ca, "b")), server.ForCallers("h2")); err == nil {
		t.Error("a node's certificate passed as a caller's, where both have one authority")
	}
	open := l.store("", l.files("o", l.issue(ca, Leaf{Hosts: []string{"localhost"}, Server: true})))
	if _, _, err, _ := handshake(t, &tls.Config{InsecureSkipVerify: true}, open.ForCallers("h2")); err != nil {
		t.Errorf("without an authority for callers none is asked for, got %v", err)
	}
}

// TestNoSessionIsResumed: a client that keeps tickets gets none.
func TestNoSessionIsResumed(t *testing.T) {
	l := newLab(t)
	ca := l.authority("ca")
	server := l.store("", l.files("s", l.issue(ca, Leaf{Hosts: []string{"localhost"}, Server: true}))).ForCallers("h2")
	client := &tls.Config{InsecureSkipVerify: true, ServerName: "localhost", ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	for range 2 {
		state, _, err, _ := handshake(t, client, server)
		if err != nil || state.DidResume {
			t.Errorf("resumed: %v, error %v", state.DidResume, err)
		}
	}
}

func TestBadFilesAreRefusedAtTheStart(t *testing.T) {
	l := newLab(t)
	ca := l.authority("peers")
	a, b := l.node(ca, "a"), l.node(ca, "b")
	good := l.files("good", a, ca)
	junk := l.write("junk", []byte("nothing"))
	old := l.files("old", l.issue(ca, Leaf{URI: NodeID(DefaultDomain, "a"), Server: true, Client: true, Until: l.now.Add(-time.Minute)}), ca)
	for name, c := range map[string]struct {
		files Files
		want  string
	}{
		"no file":               {Files{l.dir + "/none", good.Key, good.CA}, "/none"},
		"key of another":        {Files{good.Cert, l.write("b.key", b.Key), good.CA}, "b.key"},
		"no certificate":        {Files{junk, good.Key, good.CA}, junk},
		"no authority":          {Files{good.Cert, good.Key, junk}, "no certificate in PEM"},
		"a leaf as authority":   {Files{good.Cert, good.Key, good.Cert}, "not one of an authority"},
		"a key as authority":    {Files{good.Cert, good.Key, good.Key}, "PRIVATE KEY"},
		"expired":               {old, "expired"},
		"a chain cut off":       {Files{l.write("cut.crt", a.Cert, ca.Pair().Cert[:100]), good.Key, good.CA}, "cut.crt: block 2, which begins in line 1"},
		"another node's":        {l.files("b", b, ca), "/node/a"},
		"another authority":     {l.files("x", a, l.authority("x")), "other nodes would refuse it"},
		"for nobody to connect": {l.files("y", l.issue(ca, Leaf{URI: NodeID(DefaultDomain, "a"), Server: true}), ca), "other nodes would refuse it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(Config{Plane: "nodes", Files: c.files, Node: "a"})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want something about %q", err, c.want)
			}
		})
	}
}

// TestFilesAreReadAgain replaces files under a store that runs, well and badly.
func TestFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		ca := l.authority("peers")
		f := l.files("a", l.node(ca, "a"), ca)
		var log strings.Builder
		changed := 0
		s, err := Open(Config{
			Plane: "nodes", Files: f, Node: "a", Logger: slog.New(slog.NewTextHandler(&log, nil)), Changed: func() { changed++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		serial := func() string { synctest.Wait(); return s.cur.Load().leaf().SerialNumber.String() }
		first := serial()

		next := l.issue(ca, Leaf{Name: "a", URI: NodeID(DefaultDomain, "a"), Server: true, Client: true, Until: l.now.Add(time.Hour)})
		l.write("a.crt", next.Cert)
		time.Sleep(lookEvery + lookEvery/2) // the key is still the old one: not told, since it may be on its way
		if serial() != first || log.Len() > 0 {
			t.Errorf("half of a change is in use, or was told of: %s", log.String())
		}
		l.write("a.key", next.Key)
		time.Sleep(lookEvery)
		second := serial()
		if own, _ := s.NotAfter(); second == first || changed != 1 || time.Until(own) > time.Hour {
			t.Errorf("the new certificate is not in use: %d changes, expires in %s", changed, time.Until(own))
		}
		log.Reset()
		l.write("a.key", l.node(ca, "a").Key)
		time.Sleep(5 * lookEvery)
		if serial() != second || s.Refused() != 1 || strings.Count(log.String(), "level=ERROR") != 1 || !strings.Contains(log.String(), "a.key") {
			t.Errorf("a bad key: refused %d times, log %s", s.Refused(), log.String())
		}
		if err := os.Remove(f.Cert); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * lookEvery)
		if serial() != second || s.Refused() != 2 {
			t.Errorf("a file that is gone: refused %d times", s.Refused())
		}
		l.write("a.crt", next.Cert)
		l.write("a.key", next.Key)
		time.Sleep(2 * lookEvery)
		other := l.authority("new")
		l.write("a-ca.crt", other.Pair().Cert) // the own certificate is not of it
		time.Sleep(5 * lookEvery)
		if s.Refused() != 3 || len(s.cur.Load().authorities) != 1 {
			t.Errorf("an authority that is not the own one: refused %d times", s.Refused())
		}
		l.write("a-ca.crt", ca.Pair().Cert, other.Pair().Cert)
		time.Sleep(2 * lookEvery)
		synctest.Wait()
		if len(s.cur.Load().authorities) != 2 || s.Refused() != 3 || !strings.Contains(log.String(), "authorities=2") {
			t.Errorf("two authorities are not in use: log %s", log.String())
		}
		l.write("a-ca.crt", ca.Pair().Cert, other.Pair().Cert[:len(other.Pair().Cert)-10]) // as when the disk is full
		time.Sleep(5 * lookEvery)
		if len(s.cur.Load().authorities) != 2 || s.Refused() != 4 || !strings.Contains(log.String(), "block 2") {
			t.Errorf("a file that is cut off was taken over: log %s", log.String())
		}
		cancel()
		if err := <-done; err != context.Canceled {
			t.Error(err)
		}
	})
}

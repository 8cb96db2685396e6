package transport_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/internal/certs"
	"github.com/ringlimit/ringlimit/transport"
)

// secureField is a field whose nodes have certificates.
type secureField struct {
	*field
	dir string
	ca  *certs.Authority
}

func newSecureField(t *testing.T) *secureField {
	f := &secureField{field: newField(t), dir: t.TempDir()}
	f.ca = f.authority("peers")
	return f
}

func (f *secureField) authority(name string) *certs.Authority {
	f.t.Helper()
	ca, err := certs.NewAuthority(name, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		f.t.Fatal(err)
	}
	return ca
}

// write writes a file of the field.
func (f *secureField) write(name string, data ...[]byte) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	var all []byte
	for _, d := range data {
		all = append(all, d...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// certified writes a certificate for a node by ca and returns a store of it that
// believes the authorities.
func (f *secureField) certified(name string, ca *certs.Authority, believes ...*certs.Authority) *certs.Store {
	f.t.Helper()
	p, err := ca.Issue(certs.Leaf{
		Name: name, URI: certs.NodeID(certs.DefaultDomain, name), Server: true, Client: true,
		From: time.Now().Add(-time.Minute), Until: time.Now().Add(time.Hour),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	var pems [][]byte
	for _, b := range believes {
		pems = append(pems, b.Pair().Cert)
	}
	s, err := certs.Open(certs.Config{Plane: "nodes", Logger: slog.New(slog.DiscardHandler), Files: certs.Files{
		Cert: f.write(name+".crt", p.Cert), Key: f.write(name+".key", p.Key), CA: f.write(name+"-ca.crt", pems...),
	}})
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func with(s transport.Secure) func(*transport.Config) {
	return func(c *transport.Config) { c.Secure = s }
}

// TestSecureLinks: calls, bulk calls and raft go over TLS as they go without.
func TestSecureLinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSecureField(t)
		a := f.start("a", with(f.certified("a", f.ca, f.ca)))
		b := f.start("b", with(f.certified("b", f.ca, f.ca)))
		a.SetPeers([]string{"b"})
		b.SetPeers([]string{"a"})
		f.until(func() bool { _, up := a.Link("b"); return up }, "link up")
		for _, call := range []func(context.Context, string, uint8, []byte) ([]byte, error){a.Call, a.CallBulk} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			large := strings.Repeat("x", 1<<20)
			if answer, err := call(ctx, "b", 1, []byte(large)); err != nil || string(answer) != large {
				t.Errorf("%d bytes back, %v", len(answer), err)
			}
			cancel()
		}
	})
}

// TestSecureLinksRefuse: whoever cannot prove its name gets no link, no bulk call and
// no snapshot, whichever side dials, and the others' link goes on.
func TestSecureLinksRefuse(t *testing.T) {
	for name, intruder := range map[string]func(*secureField) transport.Secure{
		"plain":                  func(*secureField) transport.Secure { return nil },
		"another authority":      func(f *secureField) transport.Secure { return f.certified("c", f.authority("other"), f.ca) },
		"another authority both": func(f *secureField) transport.Secure { ca := f.authority("other"); return f.certified("c", ca, ca) },
		"certificate of b":       func(f *secureField) transport.Secure { return f.certified("b", f.ca, f.ca) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newSecureField(t)
				a := f.start("a", with(f.certified("a", f.ca, f.ca)))
				b := f.start("b", with(f.certified("b", f.ca, f.ca)))
				a.SetPeers([]string{"b", "c"})
				b.SetPeers([]string{"a"})
				f.until(func() bool { _, up := a.Link("b"); return up }, "link up")
				var set []func(*transport.Config)
				if s := intruder(f); s != nil {
					set = append(set, with(s))
				}
				c := f.start("c", set...)
				c.SetPeers([]string{"a"})
				time.Sleep(5 * time.Second)
				for _, p := range []*peer{a, c} {
					other := map[string]string{"a": "c", "c": "a"}[p.name]
					if _, up := p.Link(other); up {
						t.Errorf("%s has a link to %s", p.name, other)
					}
					for _, call := range []func(context.Context, string, uint8, []byte) ([]byte, error){p.Call, p.CallBulk} {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						if _, err := call(ctx, other, 1, []byte("x")); err == nil {
							t.Errorf("a call of %s was answered", p.name)
						}
						cancel()
					}
				}
				if since, up := a.Link("b"); !up || since < 4*time.Second {
					t.Errorf("the link of the others: up %v, for %s", up, since)
				}
			})
		})
	}
}

// TestSilentHandshakesAreCutOff: connections that say nothing hold up nobody and end.
func TestSilentHandshakesAreCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSecureField(t)
		a := f.start("a", with(f.certified("a", f.ca, f.ca)))
		began := time.Now()
		var ends []time.Duration
		done := make(chan time.Duration)
		for i := range 10 {
			nc, err := f.net.Host(fmt.Sprint("x", i)).Dial(t.Context(), "a:7601")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				defer nc.Close()
				_, _ = nc.Read(make([]byte, 1))
				done <- time.Since(began)
			}()
		}
		b := f.start("b", with(f.certified("b", f.ca, f.ca)))
		b.SetPeers([]string{"a"})
		f.until(func() bool { _, up := b.Link("a"); return up }, "link up")
		if took := time.Since(began); took > 200*time.Millisecond {
			t.Errorf("the link took %s", took)
		}
		for range 10 {
			ends = append(ends, <-done)
		}
		for _, d := range ends {
			if d > time.Second {
				t.Errorf("a silent connection was kept for %s", d)
			}
		}
		_ = a
	})
}

// TestLinksEndWithTheirAuthority: when one is not believed any more, the links by its
// certificates end at the next Recheck, and no others do.
func TestLinksEndWithTheirAuthority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSecureField(t)
		old := f.authority("old")
		store := f.certified("a", f.ca, f.ca, old)
		a := f.start("a", with(store))
		f.start("b", with(f.certified("b", f.ca, f.ca))).SetPeers([]string{"a"})
		f.start("c", with(f.certified("c", old, f.ca))).SetPeers([]string{"a"})
		for _, n := range []string{"b", "c"} {
			f.until(func() bool { _, up := a.Link(n); return up }, "link to %s up", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- store.Run(ctx) }()
		f.write("a-ca.crt", f.ca.Pair().Cert)
		time.Sleep(3 * time.Second)
		a.Recheck(t.Context())
		time.Sleep(time.Second)
		if _, up := a.Link("c"); up {
			t.Error("the link by the old authority stands")
		}
		if since, up := a.Link("b"); !up || since < 3*time.Second {
			t.Errorf("the other link: up %v, for %s", up, since)
		}
		cancel()
		<-done
	})
}

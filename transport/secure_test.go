package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
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

// doubter believes a number of times who the others are, and then nobody, as when
// authorities have changed meanwhile.
type doubter struct {
	transport.Secure
	left  atomic.Int64 // checks that go well
	dials atomic.Int64
}

func (d *doubter) Client(node string) *tls.Config {
	d.dials.Add(1)
	return d.Secure.Client(node)
}

func (d *doubter) Check(state tls.ConnectionState, node string) error {
	if d.left.Add(-1) < 0 {
		return errors.New("not believed any more")
	}
	return d.Secure.Check(state, node)
}

// doubters starts nodes a and b that believe each other for long.
func (f *secureField) doubters() (a, b *peer, as, bs *doubter) {
	f.t.Helper()
	as, bs = &doubter{Secure: f.certified("a", f.ca, f.ca)}, &doubter{Secure: f.certified("b", f.ca, f.ca)}
	as.left.Store(1000)
	bs.left.Store(1000)
	return f.start("a", with(as)), f.start("b", with(bs)), as, bs
}

// TestBulkConnectionsAreCheckedAtEachCall, by the side that serves them and by the one
// that has kept them.
func TestBulkConnectionsAreCheckedAtEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSecureField(t)
		a, b, as, bs := f.doubters()
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := a.CallBulk(ctx, "b", 1, []byte("x"))
			synctest.Wait()
			return err
		}
		for range 2 {
			if err := call(); err != nil || as.dials.Load() != 1 {
				t.Fatalf("%v, after %d dials", err, as.dials.Load())
			}
		}
		bs.left.Store(0)
		want(t, call(), fault.Unavailable)
		idle, _ := a.Bulks()
		if _, served := b.Bulks(); idle != 0 || served != 0 {
			t.Errorf("%d connections are kept and %d served by a certificate that is not believed", idle, served)
		}
		bs.left.Store(1000)
		if err := call(); err != nil || as.dials.Load() != 2 {
			t.Fatalf("%v, after %d dials", err, as.dials.Load())
		}
		as.left.Store(0) // from here a's kept connection is not believed, and one made anew is
		if err := call(); err != nil || as.dials.Load() != 3 {
			t.Errorf("%v, after %d dials", err, as.dials.Load())
		}
		if _, served := b.Bulks(); served != 1 {
			t.Errorf("%d connections are served, of which a believes one", served)
		}
	})
}

// TestSnapshotsAreCheckedAgain, when they begin and before raft takes one for whole.
func TestSnapshotsAreCheckedAgain(t *testing.T) {
	for checks, took := range map[int64]bool{1: false, 2: false, 3: true} { // the first is that of the hello
		synctest.Test(t, func(t *testing.T) {
			f := newSecureField(t)
			a, b, _, bs := f.doubters()
			a.SetPeers([]string{"b"})
			f.until(func() bool { _, up := a.Link("b"); return up }, "link up")
			from, to := a.Raft(id("a")), b.Raft(id("b"))
			defer from.Close()
			bs.left.Store(checks)
			var wait sync.WaitGroup
			ended := make(chan struct{})
			wait.Go(func() {
				select {
				case rpc := <-to.Consumer():
					_, err := io.ReadAll(rpc.Reader)
					rpc.Respond(new(raft.InstallSnapshotResponse), err)
				case <-ended:
				}
			})
			err := from.InstallSnapshot("", raft.ServerAddress(id("b")), &raft.InstallSnapshotRequest{
				Term: 1, SnapshotVersion: 1, Size: 5, Configuration: raft.EncodeConfiguration(configuration("x")),
			}, new(raft.InstallSnapshotResponse), strings.NewReader("state"))
			if (err == nil) != took || err != nil && !strings.Contains(err.Error(), "not believed any more") {
				t.Errorf("believed %d times: %v", checks, err)
			}
			close(ended)
			wait.Wait()
			to.Close()
		})
	}
}

// TestALinkIsCheckedAgainOnceItStands, on either side: Recheck may have passed before.
func TestALinkIsCheckedAgainOnceItStands(t *testing.T) {
	for _, dials := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			f := newSecureField(t)
			a, b, as, bs := f.doubters()
			if dials { // the handshake of the side that dials is its first check
				as.left.Store(0)
			} else {
				bs.left.Store(1)
			}
			a.SetPeers([]string{"b"})
			time.Sleep(100 * time.Millisecond)
			if _, up := a.Link("b"); up || a.Process("b") != "" || b.Process("a") != "" {
				t.Errorf("a doubts: %v; a link stands whose certificate is not believed", dials)
			}
			as.left.Store(1000)
			bs.left.Store(1000)
			f.until(func() bool { _, up := a.Link("b"); return up }, "link up")
		})
	}
}

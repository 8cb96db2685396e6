package main

import (
	"context"
	"crypto/tls"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/cluster"
)

// tlsLab runs `rlnode tls init` and returns the directory.
func tlsLab(t *testing.T, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "lab")
	if code, out, errs := command(t, append([]string{"tls", "init", "--dir", dir}, args...)...); code != 0 {
		t.Fatalf("code %d, %s%s", code, out, errs)
	}
	return dir
}

func TestTLSInitMakesAllAndOverwritesNothing(t *testing.T) {
	dir := tlsLab(t, "--node", "a", "--node", "b", "--hosts", "10.0.0.1,limits.example")
	contents := map[string]string{}
	walk := func() (changed, added []string) {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				t.Error(err)
				return err
			}
			info, _ := e.Info()
			switch secret := strings.HasSuffix(path, ".key") || strings.HasSuffix(path, ".keys"); {
			case e.IsDir() && info.Mode().Perm() != 0o700, secret && info.Mode().Perm() != 0o600:
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			if e.IsDir() {
				return nil
			}
			data, _ := os.ReadFile(path)
			switch was, ok := contents[path]; {
			case !ok:
				added = append(added, strings.TrimPrefix(path, dir+"/"))
			case was != string(data):
				changed = append(changed, path)
			}
			contents[path] = string(data)
			return nil
		})
		return changed, added
	}
	want := "a/peer.crt a/peer.key a/server.crt a/server.key b/peer.crt b/peer.key b/server.crt b/server.key " +
		"caller-ca.crt caller-ca.key client.crt client.key gossip.keys operator.crt operator.key peer-ca.crt peer-ca.key"
	if _, added := walk(); strings.Join(added, " ") != want {
		t.Errorf("made %s", added)
	}
	for name, c := range map[string]struct {
		args  []string
		code  int
		added string
	}{
		"a node again":  {[]string{"--node", "c", "--node", "a"}, exitError, ""},
		"nothing new":   {nil, exitUsage, ""},
		"a bad name":    {[]string{"--node", "../x"}, exitUsage, ""},
		"no time":       {[]string{"--node", "x", "--valid-for", "1s"}, exitUsage, ""},
		"a node more":   {[]string{"--node", "d"}, 0, "d/peer.crt d/peer.key d/server.crt d/server.key"},
		"no directory":  {[]string{"--dir", ""}, exitUsage, ""},
		"not a command": {[]string{"extra"}, exitUsage, ""},
	} {
		code, _, errs := command(t, append([]string{"tls", "init", "--dir", dir}, c.args...)...)
		changed, added := walk()
		if code != c.code || len(changed) > 0 || strings.Join(added, " ") != c.added {
			t.Errorf("%s: code %d, changed %s, made %s: %s", name, code, changed, added, errs)
		}
	}
	if err := os.Remove(filepath.Join(dir, "peer-ca.key")); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := command(t, "tls", "init", "--dir", dir, "--node", "e"); code != exitError || !strings.Contains(errs, "without its key") {
		t.Errorf("without the authority's key: code %d, %s", code, errs)
	}
}

// freeAddr is an address of loopback that nobody listens on now.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// TestServeByTheFilesOfTLSInit: the flags that tls init prints are those that serve and
// the other commands take, on real sockets.
func TestServeByTheFilesOfTLSInit(t *testing.T) {
	dir := tlsLab(t, "--node", "a")
	at := func(name string) string { return filepath.Join(dir, name) }
	grpc, web := freeAddr(t), freeAddr(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{
			"serve", "--name", "a", "--bootstrap-expect", "1", "--policies", "../../examples/policies.yaml", "--log-level", "error",
			"--grpc", grpc, "--http", web, "--peer", "127.0.0.1:0", "--gossip", freeAddr(t),
			"--tls-cert", at("a/server.crt"), "--tls-key", at("a/server.key"), "--tls-client-ca", at("caller-ca.crt"),
			"--peer-tls-cert", at("a/peer.crt"), "--peer-tls-key", at("a/peer.key"), "--peer-tls-ca", at("peer-ca.crt"),
			"--gossip-keys", at("gossip.keys"),
		}, io.Discard, io.Discard)
	}()
	defer func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("serve ended with code %d", code)
		}
	}()
	as := func(name string, args ...string) (int, string, string) {
		t.Helper()
		return command(t, append(args, "--addr", grpc, "--ca-file", at("caller-ca.crt"), "--client-cert", at(name+".crt"), "--client-key", at(name+".key"))...)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		code, out, errs := as("operator", "status")
		if code == 0 {
			break
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("not healthy: code %d, %s%s", code, out, errs)
		}
	}
	if code, out, errs := as("client", "check", "--tenant", "t"); code != 0 || !strings.Contains(out, "allowed") {
		t.Errorf("a client: code %d, %s%s", code, out, errs)
	}
	for _, c := range []struct {
		name, want string
		args       []string
	}{
		{"a node's certificate", "cannot connect", []string{"--ca-file", at("caller-ca.crt"), "--client-cert", at("a/peer.crt"), "--client-key", at("a/peer.key")}},
		{"no certificate", "cannot connect", []string{"--ca-file", at("caller-ca.crt")}},
		{"another authority of the node's", "certificate signed by unknown authority", []string{"--ca-file", at("peer-ca.crt")}},
		{"no TLS", "if it wants TLS, give --ca-file", nil},
		{"another name", "not nonsense", []string{"--ca-file", at("caller-ca.crt"), "--tls-server-name", "nonsense"}},
	} {
		if code, _, errs := command(t, append([]string{"status", "--addr", grpc}, c.args...)...); code != exitError || !strings.Contains(errs, c.want) {
			t.Errorf("%s: code %d, %s", c.name, code, errs)
		}
	}
	if code, _, errs := command(t, "status", "--addr", grpc, "--client-cert", at("client.crt")); code != exitUsage {
		t.Errorf("a certificate without its key: code %d, %s", code, errs)
	}
	pair, err := tls.LoadX509KeyPair(at("client.crt"), at("client.key"))
	if err != nil {
		t.Fatal(err)
	}
	for protocol, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		tr := &http.Transport{ForceAttemptHTTP2: http2, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}}
		r, err := (&http.Client{Transport: tr, Timeout: 5 * time.Second}).Get("https://" + web + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		tr.CloseIdleConnections()
		if r.StatusCode != http.StatusOK || r.Proto != protocol {
			t.Errorf("readyz: status %d by %s, want %s", r.StatusCode, r.Proto, protocol)
		}
	}
}

func TestOnlyLoopbackIsServedWithoutCertificates(t *testing.T) {
	serve := func(more ...string) []string {
		return append([]string{"serve", "--name", "a", "--data-dir", "/dev/null/dir"}, more...)
	}
	for _, c := range []struct {
		args []string
		want string // of the error; the directory's: the addresses have been accepted
	}{
		{serve(), "/dev/null"},
		{serve("--grpc", "localhost:0", "--http", "[::1]:0", "--peer", "127.0.0.2:0"), "/dev/null"},
		{serve("--grpc", "10.0.0.1:7600"), "--grpc 10.0.0.1:7600 is open to other machines"},
		{serve("--grpc", ":7600"), "give --tls-cert"},
		{serve("--http", "0.0.0.0:7700"), "--http 0.0.0.0:7700"},
		{serve("--peer", "[::]:7601"), "--peer-tls-cert"},
		{serve("--gossip", "node1:7602"), "--gossip-keys"},
		{serve("--gossip", "node1:7602", "--grpc", "10.0.0.1:7600", "--insecure", "--log-level", "error"), "/dev/null"},
		{serve("--grpc", "10.0.0.1:7600", "--tls-cert", "x", "--tls-key", "y", "--peer-tls-cert", "x", "--peer-tls-key", "y", "--peer-tls-ca", "z"), "give --tls-client-ca beside"},
		{serve("--tls-cert", "x"), "give both or none"},
		{serve("--tls-cert", "x", "--tls-key", "y"), "--peer-tls-cert"},
		{serve("--tls-client-ca", "x"), "--tls-client-ca"},
		{serve("--peer-tls-cert", "x", "--peer-tls-ca", "y"), "give all three"},
		{[]string{"dev", "--grpc", "0.0.0.0:7600"}, "--grpc 0.0.0.0:7600 is open"},
		{[]string{"dev", "--http", ":7600"}, "--http :7600 is open"},
	} {
		code, _, errs := command(t, c.args...)
		want := exitUsage
		if c.want == "/dev/null" {
			want = exitError
		}
		if code != want || !strings.Contains(errs, c.want) {
			t.Errorf("%q: code %d, %s", c.args, code, errs)
		}
		insecure := slices.Contains(c.args, "--insecure")
		if told := strings.Contains(errs, "INSECURE") && strings.Contains(errs, "--grpc 10.0.0.1:7600, --gossip node1:7602"); told != insecure {
			t.Errorf("%q: warned %v: %s", c.args, told, errs)
		}
	}
}

func TestPlanesAreSecuredOneByOne(t *testing.T) {
	all := cluster.Addresses{GRPC: "10.0.0.1:1", Peer: "10.0.0.1:2", Gossip: "10.0.0.1:3", HTTP: "10.0.0.1:4"}
	for _, c := range []struct {
		tls  cluster.TLS
		want string
	}{
		{cluster.TLS{}, "--grpc"},
		{cluster.TLS{Cert: "c", ClientCA: "a"}, "--peer"},
		{cluster.TLS{PeerCert: "c"}, "--grpc"},
		{cluster.TLS{Cert: "c", PeerCert: "c", GossipKeys: "k"}, "--grpc"}, // anybody could call
		{cluster.TLS{Cert: "c", ClientCA: "a", PeerCert: "c"}, "--gossip"},
		{cluster.TLS{Cert: "c", ClientCA: "a", PeerCert: "c", GossipKeys: "k"}, ""},
	} {
		err := exposed(&cluster.Config{Listen: all, TLS: c.tls}, false, io.Discard)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want+" ") {
			t.Errorf("%+v: %v", c.tls, err)
		}
	}
}

// TestAFileThatIsGivenAndEmptyIsNoFile: what was meant to be encrypted is not done plainly.
func TestAFileThatIsGivenAndEmptyIsNoFile(t *testing.T) {
	for _, c := range []struct {
		args  []string
		flags string
	}{
		{[]string{"serve", "--name", "a", "--data-dir", "/dev/null/dir"}, "tls-cert tls-key tls-client-ca peer-tls-cert peer-tls-key peer-tls-ca gossip-keys"},
		{[]string{"status", "--addr", "127.0.0.1:1"}, "ca-file client-cert client-key"},
	} {
		for _, name := range strings.Fields(c.flags) {
			try := func(want string, more ...string) {
				t.Helper()
				if code, _, errs := command(t, append(c.args, more...)...); code != exitUsage || !strings.Contains(errs, want) || !strings.Contains(errs, "given and empty") {
					t.Errorf("%s %q: code %d, %s", c.args[0], more, code, errs)
				}
			}
			try("--"+name, "--"+name, "")
			env := "RLNODE_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			t.Setenv(env, "")
			try(env)
			if err := os.Unsetenv(env); err != nil { // Setenv puts back what was before
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(file, []byte(name+": \"\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			try("c.yaml:1:1: "+name, "--config", file)
		}
	}
}

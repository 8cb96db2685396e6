package client

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
)

// TestFirstStartFromAFile: a client that has never reached a node decides as one that
// has, by the policies and the number of clients in the file.
func TestFirstStartFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.json")
	outages(t, three, modes, 3, func(t *testing.T, f *fakeCluster, _ []*Client, _ *counting) {
		c := f.client(WithPolicyCache(path)) // the fourth
		time.Sleep(time.Second)
		c.Close()
		f.each((*fakeNode).kill)
		c = f.client(WithPolicyCache(path), RequirePolicyCache())
		defer c.Close()
		time.Sleep(100 * time.Millisecond) // it has tried
		wantMode(t, c, "closed", false, ModeClosed, 0)
		for i := range 30 {
			if d, _, err := decide(t, c, planned("local")); err != nil || d.Limit != 25 || d.Allowed != (i < 25) {
				t.Fatalf("%+v, %v", d, err)
			}
		}
		// Before it has tried to connect, a call waits for that and no longer.
		late := f.client(WithPolicyCache(path))
		defer late.Close()
		if d, took, err := decide(t, late, planned("patient")); err != nil || d.FailureMode != ModeClosed || took > 80*time.Millisecond {
			t.Errorf("%+v, %v after %v", d, err, took)
		}
		f.each((*fakeNode).start)
		time.Sleep(time.Second)
		if d, _, err := decide(t, c, planned("closed")); err != nil || d.Degraded {
			t.Errorf("back again: %+v, %v", d, err)
		}
	})
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("files: %v, %v", left, err)
	}
}

// TestCacheIsWrittenOnce while nothing changes, and again when something has.
func TestCacheIsWrittenWhenSomethingChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.json")
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, one...)
		f.tell(modes)
		c := f.client(WithPolicyCache(path))
		time.Sleep(time.Second)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("written again: %v", err)
		}
		other := f.client()
		time.Sleep(time.Minute)
		if k, err := readCache(path); err != nil || k.share.Clients != 2 {
			t.Errorf("with another client: %+v, %v", k.share, err)
		}
		other.Close()
		c.Close()
		f.stop()
	})
}

func TestBadCacheIsToldAndNotUsed(t *testing.T) {
	const good = `{"format":1,"cluster":"x","version":3,"digest":9,"clients":4,"policies":{"home":["tenant"],"no_match":"allow","policies":[]}}`
	if k, err := parseCache([]byte(good)); err != nil || k.share.Clients != 4 || k.share.Rank < 0 || k.share.Rank > 3 || k.version != 3 || k.digest != 9 {
		t.Fatalf("%+v, %v", k, err)
	}
	for text, want := range map[string]string{
		"":                     "not a policy cache: EOF",
		good[:50]:              "not a policy cache: unexpected EOF",
		good + "{}":            "something follows",
		`{"format":2}`:         "format: 2, want 1",
		`{"unknown":1}`:        `unknown field "unknown"`,
		"policies:\n- {id: a}": "invalid character",
		strings.Replace(good, `"clients":4`, `"clients":-1`, 1):                      "clients: -1, want 0 … 1000000",
		strings.Replace(good, `"home":["tenant"]`, `"home":[]`, 1):                   "policies: decode policies: home",
		strings.Replace(good, `"policies":[]`, `"policies":[{"id":"a"}]`, 1):         "policies: decode policies: ",
		strings.Replace(good, `"no_match":"allow"`, `"no_match":"allow","x":[]`, 1):  "policies: decode policies: ",
		`{"format":1,"cluster":"","version":0,"digest":0,"clients":0}`:               "policies: decode policies: ",
		strings.Replace(good, `{"home"`, strings.Repeat(" ", maxCache)+`{"home"`, 1): "more than",
	} {
		path := filepath.Join(t.TempDir(), "policies.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		logger := WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
		refuse := WithDialer(nobody)
		_, err := New(one, refuse, logger, WithPolicyCache(path), RequirePolicyCache())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
		c, err := New(one, refuse, logger, WithPolicyCache(path), WithDefaultTimeout(10*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), path) {
			t.Errorf("%.60s: not told: %s", text, log.String())
		}
		if _, err := c.Decide(t.Context(), acme); !errors.Is(err, fault.Deadline) {
			t.Errorf("%.60s: %v", text, err)
		}
		c.Close()
		if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
			t.Errorf("%.60s: the file was touched: %v", text, err)
		}
	}
}

func TestMissingCacheIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.json")
	var log bytes.Buffer
	logger := WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
	if _, err := New(one, WithDialer(nobody), logger, WithPolicyCache(path), RequirePolicyCache()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("required: %v", err)
	}
	c, err := New(one, WithDialer(nobody), logger, WithPolicyCache(path))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if strings.Contains(log.String(), path) {
		t.Error(log.String())
	}
}

func TestClientCountIsChecked(t *testing.T) {
	for _, n := range []int{0, -1, maxClients + 1} {
		if _, err := New(one, WithClientCount(n)); !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

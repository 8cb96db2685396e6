package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/statusjson"
)

// command runs one command line.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// output is a writer that tests may read while it is written.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// devCluster runs `rlnode dev` on free ports and returns the nodes' addresses.
func devCluster(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out output
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, append([]string{"dev", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--log-level", "error"}, args...), &out, io.Discard)
	}()
	t.Cleanup(func() {
		cancel()
		if code := <-done; code != 0 {
			t.Errorf("dev ended with code %d", code)
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !strings.HasSuffix(out.String(), "ready\n") {
		select {
		case <-tick.C:
		case code := <-done:
			done <- code
			t.Fatalf("dev ended with code %d: %s", code, out.String())
		case <-t.Context().Done():
			t.Fatal(out.String())
		}
	}
	_, rest, _ := strings.Cut(out.String(), "--addr ")
	addrs, _, _ := strings.Cut(rest, " ")
	return addrs
}

func TestDevClusterAllowsThenDenies(t *testing.T) {
	addrs := devCluster(t)
	check := func(args ...string) (int, map[string]any) {
		t.Helper()
		code, out, errs := command(t, append([]string{"check", "--addr", addrs, "-o", "json"}, args...)...)
		var v map[string]any
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			t.Fatalf("%v: %q %q", err, out, errs)
		}
		return code, v
	}
	if code, v := check("--tenant", "acme", "--route", "POST:/v1/export"); code != 0 || v["allowed"] != true {
		t.Errorf("first: code %d, %v", code, v)
	}
	code, v := check("--tenant", "acme", "--route", "POST:/v1/export")
	if code != exitDenied || v["allowed"] != false || v["reason"] != "rate_limited" || v["retry_after_ns"].(float64) <= 0 {
		t.Errorf("second: code %d, %v", code, v)
	}
	if code, v := check("--tenant", "acme", "--route", "POST:/v1/export", "--cost", "0"); code != exitDenied || v["allowed"] != false {
		t.Errorf("a look: code %d, %v", code, v)
	}
	for _, field := range []string{
		"allowed", "limit", "remaining", "reset_after_ns", "retry_after_ns", "delay_ns",
		"policy_id", "policy_version", "reason", "degraded", "limits",
	} {
		if _, ok := v[field]; !ok {
			t.Errorf("the answer has no %s", field)
		}
	}
	code, text, errs := command(t, "check", "--addr", addrs, "--tenant", "acme", "--route", "POST:/v1/export")
	if code != exitDenied || !strings.Contains(text, "denied") || !strings.Contains(text, "retry after") {
		t.Errorf("in words: code %d, %q, %q", code, text, errs)
	}
	for range 2 { // the same id is charged once
		if code, _ := check("--tenant", "other", "--route", "POST:/v1/export", "--request-id", "r1"); code != 0 {
			t.Errorf("with a request id: code %d", code)
		}
	}
}

func TestStatusMembersAndBenchOfADevCluster(t *testing.T) {
	policies := filepath.Join(t.TempDir(), "p.yaml")
	if err := os.WriteFile(policies, []byte("policies:\n  - {id: p, scope: tenant, algorithm: token_bucket, amount: 1, window: 8760h, burst: 100}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	addrs := devCluster(t, "--policies", policies)
	code, out, _ := command(t, "status", "--addr", addrs, "-o", "json")
	var st statusjson.Cluster
	if err := json.Unmarshal([]byte(out), &st); err != nil || code != 0 || !st.Healthy || len(st.Nodes) != 3 || len(st.Groups) != 3 || st.Slots != 1024 {
		t.Errorf("status: code %d, %v, %s", code, err, out)
	}
	if code, out, _ := command(t, "status", "--addr", addrs); code != 0 || !strings.Contains(out, "healthy") || !strings.Contains(out, "GROUP") {
		t.Errorf("status table: code %d, %s", code, out)
	}
	if code, out, _ := command(t, "members", "--addr", addrs); code != 0 || strings.Count(out, "alive") != 3 {
		t.Errorf("members: code %d, %s", code, out)
	}
	if code, _, errs := command(t, "remove", "--addr", addrs, "node2"); code != exitError || !strings.Contains(errs, "is running") {
		t.Errorf("remove of a running node: code %d, %s", code, errs)
	}
	code, out, errs := command(t, "bench", "--addr", addrs, "--requests", "500", "--keys", "1", "--concurrency", "50", "-o", "json")
	var r struct{ Requests, Admitted, Denied, Errors int64 }
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Requests != 500 || r.Admitted != 100 || r.Denied != 400 {
		t.Errorf("bench: code %d, %v, %s %s", code, err, out, errs)
	}
	code, out, errs = command(t, "bench", "--addr", addrs, "--requests", "505", "--keys", "5", "--batch", "100", "--cost", "10", "--tenant-prefix", "b", "-o", "json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || r.Requests != 505 || r.Admitted != 50 {
		t.Errorf("bench in batches: code %d, %v, %s %s", code, err, out, errs)
	}
}

func TestWrongUsageExitsWithTwo(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"nope"},
		{"check", "--bogus"},
		{"check", "extra"},
		{"status", "-o", "xml"},
		{"remove"},
		{"serve"},
		{"serve", "--name", "a b"},
		{"serve", "--name", "a", "--control-voters", "2"},
		{"serve", "--name", "a", "--grpc", "nonsense"},
		{"dev", "--nodes", "0"},
		{"dev", "--http", "x"},
		{"bench", "--concurrency", "0"},
		{"bench", "--requests", "0", "--duration", "0s"},
		{"check", "--principal", "nonsense"},
		{"check", "--attr", "a=1", "--attr", "a=2"},
		{"check", "--principal-type", "user"},
		{"check", "--tenant", strings.Repeat("x", 65), "--cost", "-1"},
		{"check", "--cost-of", "p"},
		{"check", "--cost-of", "p=x"},
		{"check", "--cost-of", "p=1", "--cost-of", "p=2"},
		{"refund", "--tenant", "t"},
		{"policy"},
		{"policy", "nope"},
		{"policy", "get"},
		{"policy", "put"},
		{"policy", "put", "-f", "p.yaml", "--if-match", "x"},
		{"policy", "rollback", "p"},
		{"policy", "list", "-o", "yaml"},
		{"override"},
		{"override", "set", "--policy", "p", "--amount", "1", "--for", "1h"},
		{"override", "set", "--policy", "p", "--tenant", "t", "--for", "1h"},
		{"override", "set", "--policy", "p", "--tenant", "t", "--amount", "1"},
		{"override", "set", "--policy", "p", "--tenant", "t", "--amount", "1", "--scale", "2", "--for", "1h"},
		{"override", "clear", "--tenant", "t"},
		{"simulate"},
		{"simulate", "--policies", "p.yaml"},
		{"simulate", "--policies", "p.yaml", "--trace", "t", "-o", "json"},
	} {
		code, _, errs := command(t, args...)
		if code != exitUsage {
			t.Errorf("%q: code %d, want %d: %s", args, code, exitUsage, errs)
		}
		if len(args) > 0 && strings.Count(strings.TrimSpace(errs), "\n") > 0 {
			t.Errorf("%q: more than one line: %s", args, errs)
		}
	}
}

func TestUnreachableClusterIsAnError(t *testing.T) {
	for _, args := range [][]string{
		{"check", "--addr", "127.0.0.1:1", "--tenant", "t", "--timeout", "200ms"},
		{"status", "--addr", "127.0.0.1:1"},
		{"bench", "--addr", "127.0.0.1:1", "--requests", "2", "--timeout", "100ms"},
	} {
		if code, _, errs := command(t, args...); code != exitError || errs == "" {
			t.Errorf("%q: code %d, %q", args, code, errs)
		}
	}
}

package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

func TestDrainWaitsUntilTheNodeHasLeft(t *testing.T) {
	addrs := devCluster(t, "--nodes", "4")
	if code, _, errs := command(t, "drain", "--addr", addrs, "nobody"); code != exitError || !strings.Contains(errs, `no node is named "nobody"; there are node1, node2, node3, node4`) {
		t.Errorf("an unknown node: code %d, %s", code, errs)
	}
	if code, _, errs := command(t, "drain", "--addr", addrs); code != exitUsage {
		t.Errorf("no node: code %d, %s", code, errs)
	}
	if code, _, errs := command(t, "undrain", "--addr", addrs, "node2"); code != exitError || !strings.Contains(errs, "not draining") {
		t.Errorf("undrain of a node that stays: code %d, %s", code, errs)
	}

	// Interrupted, it goes on; asked again, it is waited for.
	ctx, interrupt := context.WithCancel(t.Context())
	var progress output
	done := make(chan int, 1)
	first := strings.Split(addrs, ",")[0]
	go func() { done <- run(ctx, []string{"drain", "--addr", first, "node1"}, io.Discard, &progress) }()
	for tick := time.NewTicker(5 * time.Millisecond); !strings.Contains(progress.String(), "node1: "); {
		select {
		case <-tick.C:
		case code := <-done:
			t.Fatalf("ended with code %d: %s", code, progress.String())
		}
	}
	interrupt()
	if code := <-done; code != exitError || !strings.Contains(progress.String(), "interrupted: node1 goes on draining") {
		t.Errorf("interrupted: code %d, %s", code, progress.String())
	}
	// The only address given is that of the node that leaves.
	code, out, errs := command(t, "drain", "--addr", first, "node1")
	if code != 0 || out != "node1 has left\n" || !strings.Contains(errs, "draining already") || !strings.Contains(errs, "to move away: ") {
		t.Fatalf("code %d, %q, %s", code, out, errs)
	}
	if code, out, errs := command(t, "members", "--addr", addrs); code != 0 || strings.Contains(out, "node1") || strings.Count(out, "alive") != 3 {
		t.Errorf("members: code %d, %s%s", code, out, errs)
	}
	if code, _, errs := command(t, "drain", "--addr", addrs, "node1"); code != exitError || !strings.Contains(errs, "no node is named") {
		t.Errorf("drained again after it has left: code %d, %s", code, errs)
	}
}

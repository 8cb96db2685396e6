package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/bench/fleet"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// measurePolicies puts very many policies at once.
func measurePolicies(ctx context.Context, b *bench) error {
	if err := pause(ctx, 5*time.Second); err != nil {
		return err
	}
	before, err := b.memory(ctx, "before", true)
	if err != nil {
		return err
	}
	file := filepath.Join(b.dir, "many.yaml")
	data := many(b.policies, b.size, 0)
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return err
	}
	b.say("  %d policies in a file of %.1f MB", b.policies, float64(len(data))/1e6)
	begun := time.Now()
	if err := b.rlnode(ctx, "policy", "put", "-f", file); err != nil {
		return err
	}
	b.say("  put: %.2f s", time.Since(begun).Seconds())
	if err := b.everywhere(ctx, begun); err != nil {
		return err
	}
	b.processors("put")
	other := filepath.Join(b.dir, "other.yaml")
	if err := os.WriteFile(other, many(b.policies, b.size, 10), 0o644); err != nil {
		return err
	}
	begun = time.Now()
	if err := b.rlnode(ctx, "policy", "diff", "-f", other); err != nil {
		return err
	}
	b.say("  diff of 10 changed policies: %.2f s", time.Since(begun).Seconds())
	begun = time.Now()
	if err := b.rlnode(ctx, "policy", "put", "-f", other); err != nil {
		return err
	}
	b.say("  put of 10 changed policies: %.2f s", time.Since(begun).Seconds())
	b.processors("second put")
	if _, err := b.memory(ctx, "at once", false); err != nil {
		return err
	}
	if err := pause(ctx, 30*time.Second); err != nil {
		return err
	}
	if _, err := b.memory(ctx, "30 s later", false); err != nil {
		return err
	}
	after, err := b.memory(ctx, "collected", true)
	if err != nil {
		return err
	}
	for i, n := range b.fleet.Nodes {
		b.say("  node %s took RSS +%.1f MB, heap +%.1f MB", n.Name, (after[i].rss-before[i].rss)/1e6, (after[i].live-before[i].live)/1e6)
	}
	return b.restart(ctx)
}

// restart measures how long a node takes to have all policies after a kill.
func (b *bench) restart(ctx context.Context) error {
	n := b.fleet.Nodes[2]
	if err := n.Kill(); err != nil {
		return err
	}
	begun := time.Now()
	if err := n.Start(); err != nil {
		return err
	}
	if err := b.has(ctx, n); err != nil {
		return err
	}
	b.say("  node %s, killed and started, has all policies after %.2f s", n.Name, time.Since(begun).Seconds())
	if _, err := b.fleet.WaitHealthy(ctx); err != nil {
		return err
	}
	b.say("  and the cluster is healthy after %.2f s", time.Since(begun).Seconds())
	return nil
}

// many is a file of n policies of about size bytes; the first few are others
// than in the file of none changed.
func many(n, size, changed int) []byte {
	var w bytes.Buffer
	w.WriteString("home: [tenant]\npolicies:\n")
	for i := range n {
		amount := 20 + i%7
		if i < changed {
			amount += 100
		}
		fmt.Fprintf(&w, "  - id: tenant-%06d-payments\n    match: {tenant: tenant-%06d, route: \"POST:/v1/payments\"", i, i)
		for k := 0; size > 240+60*k; k++ {
			fmt.Fprintf(&w, ", attribute-%02d: customer-%06d-of-shard-%02d-plan-%02d", k, i, i%97, (i+k)%13)
		}
		fmt.Fprintf(&w, "}\n    scope: [tenant]\n    algorithm: token_bucket\n    amount: %d\n    window: 1s\n    burst: %d\n", amount, 2*amount)
	}
	return w.Bytes()
}

// rlnode runs a command against the cluster.
func (b *bench) rlnode(ctx context.Context, args ...string) error {
	args = append(args, "--addr", strings.Join(b.fleet.GRPC(), ","))
	if out, err := exec.CommandContext(ctx, b.binary, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("rlnode %s: %w: %.500s", strings.Join(args, " "), err, out)
	}
	return nil
}

// everywhere waits until each node has the last policy of the file.
func (b *bench) everywhere(ctx context.Context, begun time.Time) error {
	for _, n := range b.fleet.Nodes {
		if err := b.has(ctx, n); err != nil {
			return err
		}
	}
	b.say("  every node has them %.2f s after the put began", time.Since(begun).Seconds())
	return nil
}

func (b *bench) has(ctx context.Context, n *fleet.Node) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := n.Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	id := fmt.Sprintf("tenant-%06d-payments", b.policies-1)
	for {
		_, err := pb.NewPoliciesClient(conn).Get(ctx, &pb.GetPolicyRequest{Id: id}, grpc.WaitForReady(true))
		if err == nil {
			return nil
		}
		if pause(ctx, time.Millisecond) != nil {
			return fmt.Errorf("node %s does not have policy %s: %w", n.Name, id, err)
		}
	}
}

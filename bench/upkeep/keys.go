package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// oneShot has buckets that are full again after 10 s.
const oneShot = `home: [tenant]
policies:
  - {id: once, match: {}, scope: [tenant], algorithm: token_bucket, amount: 1, window: 10s, burst: 1}
`

// measureKeys takes once from each of very many keys and then waits. Before, it
// takes from a tenth of them and waits too, so that what nodes keep for the next
// message, whatever the keys, is there at the beginning.
func measureKeys(ctx context.Context, b *bench) error {
	if err := b.load(ctx, "warm", b.keys/10); err != nil {
		return err
	}
	if err := b.emptied(ctx); err != nil {
		return err
	}
	if err := pause(ctx, b.idle/2); err != nil {
		return err
	}
	before, err := b.memory(ctx, "before", true)
	if err != nil {
		return err
	}
	if err := b.load(ctx, "once", b.keys); err != nil {
		return err
	}
	if _, err := b.memory(ctx, "at its height", true); err != nil {
		return err
	}
	begun := time.Now()
	if err := b.emptied(ctx); err != nil {
		return err
	}
	b.say("  no bucket is left after %.0f s", time.Since(begun).Seconds())
	for end := time.Since(begun) + b.idle/2; time.Since(begun) < max(b.idle, end); {
		if err := pause(ctx, 15*time.Second); err != nil {
			return err
		}
		if _, err := b.memory(ctx, fmt.Sprintf("%3.0f s idle", time.Since(begun).Seconds()), false); err != nil {
			return err
		}
	}
	after, err := b.memory(ctx, "after", true)
	if err != nil {
		return err
	}
	for i, n := range b.fleet.Nodes {
		b.say("  node %s: RSS %+.1f %%, heap %+.1f %%", n.Name, 100*(after[i].rss/before[i].rss-1), 100*(after[i].live/before[i].live-1))
	}
	return nil
}

// load takes once from each of n keys.
func (b *bench) load(ctx context.Context, prefix string, n int) error {
	cmd := exec.CommandContext(ctx, b.binary, "bench", "--addr", strings.Join(b.fleet.GRPC(), ","),
		"--requests", fmt.Sprint(n), "--keys", fmt.Sprint(n), "--concurrency", "8", "--batch", "500",
		"--tenant-prefix", prefix, "--timeout", "10s", "-o", "json")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("rlnode bench: %w: %s", err, out)
	}
	b.say("  %s: %s", prefix, strings.TrimSpace(string(out)))
	return nil
}

// emptied waits until no node holds a bucket.
func (b *bench) emptied(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for {
		held := 0.0
		for _, n := range b.fleet.Nodes {
			v, err := gauge(ctx, n, "ringlimit_group_buckets")
			if err != nil {
				return err
			}
			held += v
		}
		if held == 0 {
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return fmt.Errorf("%.0f buckets are left: %w", held, err)
		}
	}
}

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ringlimit/ringlimit/cluster"
	"github.com/ringlimit/ringlimit/examples"
	"github.com/ringlimit/ringlimit/policy"
)

type devOptions struct {
	nodes                         int
	policies, dataDir, grpc, http string
	logLevel                      string
	insecure                      bool
}

func devCommand() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in one process, to try things out",
		Long: "dev runs a cluster on loopback in one process, in memory unless --data-dir is given. Node i listens on the given\n" +
			"ports plus i. It prints the addresses, two commands to try, and a line `ready` once every group has a leader.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			context.AfterFunc(ctx, stop)
			return dev(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.nodes, "nodes", 3, "number of nodes")
	f.StringVar(&o.policies, "policies", "", "policy `FILE`; without it a few sample policies")
	f.StringVar(&o.dataDir, "data-dir", "", "`DIR` for the nodes' control state")
	f.StringVar(&o.grpc, "grpc", "127.0.0.1:7600", "`ADDR` of the first node for callers")
	f.StringVar(&o.http, "http", "127.0.0.1:7700", "`ADDR` of the first node for HTTP")
	f.StringVar(&o.logLevel, "log-level", "error", "debug, info, warn or error")
	f.BoolVar(&o.insecure, "insecure", false, "serve also addresses that other machines reach: whoever reaches them is trusted")
	return cmd
}

// dev runs the nodes until ctx ends.
func dev(ctx context.Context, out, stderr io.Writer, o devOptions) error {
	if o.nodes < 1 || o.nodes > 32 {
		return usageError{fmt.Errorf("--nodes %d: want 1 … 32", o.nodes)}
	}
	log, err := newLogger(o.logLevel)
	if err != nil {
		return usageError{err}
	}
	policies, err := devPolicies(o.policies)
	if err != nil {
		return err
	}
	var nodes []*cluster.Node
	g, ctx := errgroup.WithContext(ctx)
	for i := range o.nodes {
		cfg, err := o.node(i)
		if err != nil {
			return usageError{err}
		}
		if err := exposedDev(&cfg, o.insecure, stderr); err != nil {
			return err
		}
		cfg.Policies, cfg.Logger, cfg.Version = policies, log, version()
		if i > 0 {
			cfg.Join = []string{nodes[0].Addresses().Gossip}
		}
		n, err := cluster.Open(cfg)
		if err != nil {
			for _, n := range nodes {
				n.Close()
			}
			return err
		}
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		g.Go(func() error { return n.Run(ctx) })
	}
	g.Go(func() error { return announce(ctx, out, nodes, o.policies == "") })
	return g.Wait()
}

func (o *devOptions) node(i int) (cluster.Config, error) {
	cfg := cluster.Config{Name: "node" + strconv.Itoa(i+1), BootstrapExpect: o.nodes, DrainTimeout: 2 * time.Second}
	var err error
	if cfg.Listen.GRPC, err = plus("--grpc", o.grpc, i); err != nil {
		return cfg, err
	}
	if cfg.Listen.HTTP, err = plus("--http", o.http, i); err != nil {
		return cfg, err
	}
	cfg.Listen.Peer, cfg.Listen.Gossip = "127.0.0.1:0", "127.0.0.1:0"
	if o.dataDir != "" {
		cfg.DataDir = filepath.Join(o.dataDir, cfg.Name)
	}
	return cfg, nil
}

// plus adds i to the port of addr; port 0 stays 0.
func plus(flag, addr string, i int) (string, error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("%s %q: want HOST:PORT", flag, addr)
	}
	port, err := strconv.Atoi(text)
	if err != nil || port < 0 || port+i > 65535 {
		return "", fmt.Errorf("%s %q: want a port of 0 … %d", flag, addr, 65535-i)
	}
	if port > 0 {
		port += i
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

func devPolicies(path string) (*policy.Set, error) {
	if path != "" {
		return readPolicies(path)
	}
	return policy.Parse("examples/policies.yaml", examples.Policies)
}

// announce waits until every node serves, then says how to use the cluster.
func announce(ctx context.Context, out io.Writer, nodes []*cluster.Node, samples bool) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, n := range nodes {
		for ready := false; !ready; ready, _ = n.Ready() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
	var addrs []string
	for i, n := range nodes {
		a := n.Addresses()
		addrs = append(addrs, a.GRPC)
		fmt.Fprintf(out, "node%d  grpc %s  http %s\n", i+1, a.GRPC, a.HTTP)
	}
	at := ""
	if addrs[0] != "127.0.0.1:7600" {
		at = " --addr " + strings.Join(addrs, ",")
	}
	fmt.Fprintln(out, "\ntry, in another terminal:")
	if samples {
		fmt.Fprintf(out, "  bin/rlnode check%s --tenant acme --route POST:/v1/export   # allowed\n", at)
		fmt.Fprintf(out, "  bin/rlnode check%s --tenant acme --route POST:/v1/export   # denied, with a retry time\n", at)
	} else {
		fmt.Fprintf(out, "  bin/rlnode check%s --tenant acme\n  bin/rlnode status%s\n", at, at)
	}
	fmt.Fprintln(out, "\nready")
	return nil
}

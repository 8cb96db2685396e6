package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringlimit/ringlimit/cluster"
	"github.com/ringlimit/ringlimit/policy"
)

func serveCommand() *cobra.Command {
	var (
		cfg      cluster.Config
		policies string
		logLevel string
		insecure bool
	)
	cmd := &cobra.Command{
		Use:   "serve --name NAME --grpc ADDR --peer ADDR --gossip ADDR --http ADDR",
		Short: "Run one node of a cluster",
		Long: "serve runs one node. Give every first node the same --bootstrap-expect N and --join: once N are there, one of\n" +
			"them makes the cluster and takes the others in. A node that comes back to its --data-dir needs neither.\n" +
			"SIGTERM hands leadership over and ends the process; the node stays a member. A second signal ends it at once.\n" +
			"After rlnode drain the process ends by itself with exit code 0; started again it joins as a new node.\n" +
			"Without certificates only loopback addresses are served, unless --insecure is given; rlnode tls init makes some for a\n" +
			"lab. Files of certificates and keys are read again when they change.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(logLevel)
			if err != nil {
				return usageError{err}
			}
			cfg.Logger = log
			cfg.Version = version()
			cfg.Seams = seams()
			if err := cfg.Validate(); err != nil {
				return usageError{err}
			}
			if err := exposed(&cfg, insecure, cmd.ErrOrStderr()); err != nil {
				return err
			}
			if policies != "" && cfg.Restore != "" {
				return usageError{errors.New("--policies and --restore: a backup has its policies; put others once the cluster runs")}
			}
			if policies != "" {
				if cfg.Policies, err = readPolicies(policies); err != nil {
					return err
				}
			}
			return serve(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Name, "name", "", "stable `NAME` of the node, unique in the cluster")
	f.StringVar(&cfg.Listen.GRPC, "grpc", "127.0.0.1:7600", "`ADDR` to listen on for callers")
	f.StringVar(&cfg.Listen.Peer, "peer", "127.0.0.1:7601", "`ADDR` to listen on for other nodes: raft, pings, forwarded takes")
	f.StringVar(&cfg.Listen.Gossip, "gossip", "127.0.0.1:7602", "`ADDR` to listen on for gossip, TCP and UDP")
	f.StringVar(&cfg.Listen.HTTP, "http", "127.0.0.1:7700", "`ADDR` to listen on for HTTP: /v1/…, /metrics, /healthz and /readyz")
	f.StringVar(&cfg.Advertise.GRPC, "advertise-grpc", "", "`ADDR` callers use, if not --grpc")
	f.StringVar(&cfg.Advertise.Peer, "advertise-peer", "", "`ADDR` other nodes use, if not --peer")
	f.StringVar(&cfg.Advertise.Gossip, "advertise-gossip", "", "`ADDR` other nodes gossip to, if not --gossip")
	f.StringVar(&cfg.Advertise.HTTP, "advertise-http", "", "`ADDR` others use for HTTP, if not --http")
	f.StringVar(&cfg.DataDir, "data-dir", "", "`DIR` for the control state; without it even that is in memory")
	f.StringSliceVar(&cfg.Join, "join", nil, "gossip addresses of other nodes, `HOST:PORT,...`")
	f.IntVar(&cfg.BootstrapExpect, "bootstrap-expect", 0, "make a cluster of `N` nodes, if none is known yet")
	f.StringVar(&policies, "policies", "", "policy `FILE` of a new cluster; one that exists keeps its own, and the log says where they differ")
	f.StringVar(&cfg.Restore, "restore", "", "make the new cluster from a backup `FILE`; give it to every first node")
	f.IntVar(&cfg.Groups, "groups", 0, "number of raft groups of a new cluster, 1 … N; 0: one per node")
	f.IntVar(&cfg.ControlVoters, "control-voters", 3, "voters of the control group of a new cluster: 1, 3 or 5")
	f.DurationVar(&cfg.ReplaceAfter, "replace-after", 10*time.Minute, "how long a node may be dead before its replicas are made anew elsewhere; give all nodes the same")
	f.IntVar(&cfg.MoveRate, "move-rate", 8_000_000, "bytes a second, at most, of slots that leave this node for another group, and of those that come; a slot counts 512 KiB beside its bytes")
	f.DurationVar(&cfg.CheckpointInterval, "checkpoint-interval", 30*time.Second, "how often buckets of policies with on_state_loss: salvage are written to --data-dir; 0: never")
	f.DurationVar(&cfg.DrainTimeout, "drain-timeout", 30*time.Second, "how long SIGTERM waits for leadership to be handed over")
	f.StringVar(&cfg.Zone, "zone", "", "failure zone of the node, shown by status")
	f.IntVar(&cfg.MaxBuckets, "max-buckets", 0, "cap on buckets this node holds; above it takes on new keys are refused; 0: none")
	f.IntVar(&cfg.MaxPerTenant, "max-buckets-per-tenant", 0, "cap on buckets of one tenant (of one home); takes on further keys are refused; 0: none")
	f.BoolVar(&cfg.Profiling, "enable-pprof", false, "serve Go profiles under /debug/pprof/ on --http")
	f.StringVar(&logLevel, "log-level", "info", "debug, info, warn or error")
	secureFlags(f, &cfg.TLS)
	f.BoolVar(&insecure, "insecure", false, "serve also addresses that other machines reach without certificates: whoever reaches them is trusted")
	return cmd
}

// secureFlags are the files that a node proves itself by.
func secureFlags(f *pflag.FlagSet, t *cluster.TLS) {
	proofFlag(f, &t.Cert, "tls-cert", "certificate `FILE` (PEM) shown to callers on --grpc and --http")
	proofFlag(f, &t.Key, "tls-key", "key `FILE` of --tls-cert")
	proofFlag(f, &t.ClientCA, "tls-client-ca", "authorities `FILE` that callers' certificates must come from; without it callers need none")
	proofFlag(f, &t.PeerCert, "peer-tls-cert", "certificate `FILE` shown to other nodes; its URI is spiffe://DOMAIN/node/NAME, NAME as of --name")
	proofFlag(f, &t.PeerKey, "peer-tls-key", "key `FILE` of --peer-tls-cert")
	proofFlag(f, &t.PeerCA, "peer-tls-ca", "authorities `FILE` that nodes' certificates must come from")
	f.StringVar(&t.TrustDomain, "trust-domain", "ringlimit", "`DOMAIN` of the nodes' URIs")
	proofFlag(f, &t.GossipKeys, "gossip-keys", "`FILE` of gossip keys, one in base64 a line: the first encrypts, each decrypts")
}

// serve runs a node until a signal ends it.
func serve(ctx context.Context, cfg cluster.Config) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	n, err := cluster.Open(cfg)
	if err != nil {
		return err
	}
	a := n.Addresses()
	cfg.Logger.Info("listening", "node", cfg.Name, "version", cfg.Version, "incarnation", n.Incarnation(),
		"grpc", a.GRPC, "peer", a.Peer, "gossip", a.Gossip, "http", a.HTTP)
	context.AfterFunc(ctx, stop) // from here a second signal ends the process
	var memory sync.WaitGroup
	memory.Go(func() { giveBackMemory(ctx, cfg.Logger) })
	defer memory.Wait() // ctx ends with the signal, or here
	defer stop()
	return n.Run(ctx)
}

func newLogger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %q: want debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: l})), nil
}

func readPolicies(path string) (*policy.Set, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--policies: %w", err)
	}
	return policy.Parse(path, data)
}

// buildVersion is set by the linker; empty: asked of the build's own record.
var buildVersion string

func version() string {
	if buildVersion != "" {
		return buildVersion
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		Run: func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), "rlnode", version()) },
	}
}

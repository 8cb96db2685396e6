package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/ringlimit/ringlimit/cluster"
)

// plane is a listener of a node, with what would protect it.
type plane struct {
	flag, addr string
	secured    bool
	who, how   string // who could reach it unasked, and the flags that end that
}

func planes(c *cluster.Config) []plane {
	const mayCall = "decide, change policies and take backups"
	proven := c.TLS.Cert != "" && c.TLS.ClientCA != ""
	forCallers := "--tls-cert, --tls-key and --tls-client-ca"
	if c.TLS.Cert != "" {
		forCallers = "--tls-client-ca beside --tls-cert, without which callers need no certificate"
	}
	return []plane{
		{"--grpc", c.Listen.GRPC, proven, mayCall, forCallers},
		{"--http", c.Listen.HTTP, proven, mayCall, forCallers},
		{"--peer", c.Listen.Peer, c.TLS.PeerCert != "", "pass for a node", "--peer-tls-cert, --peer-tls-key and --peer-tls-ca"},
		{"--gossip", c.Listen.Gossip, c.TLS.GossipKeys != "", "tell the node who is alive", "--gossip-keys"},
	}
}

// exposed refuses listeners that other machines can reach and nothing protects, unless
// insecure says that this is meant; then it warns on stderr as the log does, whatever
// --log-level says.
func exposed(c *cluster.Config, insecure bool, stderr io.Writer) error {
	var open []string
	for _, p := range planes(c) {
		if p.addr == "" || p.secured || isLoopback(p.addr) {
			continue
		}
		if !insecure {
			return usageError{fmt.Errorf("%s %s is open to other machines: whoever reaches it could %s; give %s (rlnode tls init makes the files), "+
				"or an address of 127.0.0.1, or --insecure if the network is trusted", p.flag, p.addr, p.who, p.how)}
		}
		open = append(open, p.flag+" "+p.addr)
	}
	if open != nil {
		slog.New(slog.NewTextHandler(stderr, nil)).Warn(
			"INSECURE: whoever reaches these addresses is trusted with everything, as --insecure says", "open", strings.Join(open, ", "))
	}
	return nil
}

// exposedDev is exposed for rlnode dev, which has no certificates.
func exposedDev(c *cluster.Config, insecure bool, stderr io.Writer) error {
	for _, p := range planes(c) {
		if !insecure && !isLoopback(p.addr) {
			return usageError{fmt.Errorf("%s %s is open to other machines: whoever reaches it could %s; give an address of 127.0.0.1, "+
				"or --insecure if the network is trusted, or use rlnode serve with certificates", p.flag, p.addr, p.who)}
		}
	}
	return exposed(c, insecure, stderr)
}

// isLoopback says whether nobody but this machine reaches an address. A host name may
// mean anything tomorrow, so only one does.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

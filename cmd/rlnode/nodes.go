package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client"
)

// nodes are those that a command may ask, and how it proves itself to them.
type nodes struct {
	addrs []string
	tls   bool // by the system's authorities, if files names none
	files client.TLS
}

// addrFlag gives a command the flags of nodes.
func addrFlag(cmd *cobra.Command, n *nodes) {
	f := cmd.Flags()
	f.StringSliceVar(&n.addrs, "addr", []string{"127.0.0.1:7600"}, "gRPC addresses of any nodes, `HOST:PORT,...`")
	proofFlag(f, &n.files.CA, "ca-file", "connect by TLS to nodes whose certificates come from the authorities of `FILE`")
	proofFlag(f, &n.files.Cert, "client-cert", "certificate `FILE` to show to nodes")
	proofFlag(f, &n.files.Key, "client-key", "key `FILE` of --client-cert")
	f.StringVar(&n.files.ServerName, "tls-server-name", "", "`NAME` that nodes' certificates must be for, if not the host of --addr")
	f.BoolVar(&n.tls, "tls", false, "connect by TLS, by the system's authorities unless --ca-file is given")
}

// secure says whether connections are by TLS.
func (n *nodes) secure() bool { return n.tls || n.files != client.TLS{} }

// open makes a connection to one node, which is dialled when it is used first.
func (n *nodes) open(addr string) (*link, error) {
	l := &link{secure: n.secure()}
	creds := insecure.NewCredentials()
	if l.secure {
		var err error
		if creds, err = n.files.Credentials(nil); err != nil {
			return nil, usageError{fmt.Errorf("--ca-file, --client-cert, --client-key: %w", err)}
		}
	}
	var err error
	l.ClientConn, err = grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(creds),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			l.reached.Store(err == nil)
			return c, err
		}))
	if err != nil {
		return nil, usageError{fmt.Errorf("--addr %q: %w", addr, err)}
	}
	return l, nil
}

// link is a connection to one node.
type link struct {
	*grpc.ClientConn
	secure  bool
	reached atomic.Bool // somebody listens there
}

// errConnect is of a node that was not reached.
var errConnect = errors.New("cannot connect")

// connect waits for the connection: what fails before it stands was not done.
func (l *link) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	l.Connect()
	for state := l.GetState(); state != connectivity.Ready; state = l.GetState() {
		if state == connectivity.TransientFailure {
			return fmt.Errorf("%w: %w%s", fault.Unavailable, errConnect, l.why(ctx))
		}
		if !l.WaitForStateChange(ctx, state) {
			return fmt.Errorf("%w: %w in %s", fault.Unavailable, errConnect, connectTimeout)
		}
	}
	return nil
}

// why says what is known of a connection that failed although somebody listens there.
func (l *link) why(ctx context.Context) string {
	switch {
	case !l.reached.Load():
		return ""
	case !l.secure:
		return ": something listens there and ends the connection; if it wants TLS, give --ca-file, and --client-cert with --client-key"
	}
	_, err := healthpb.NewHealthClient(l).Check(ctx, &healthpb.HealthCheckRequest{}) // fails as the connection did
	said := status.Convert(err).Message()
	if !strings.Contains(said, "tls:") && !strings.Contains(said, "x509:") { // TLS 1.3 tells the reason late, perhaps never
		said += "; perhaps the node does not accept the certificate"
	}
	return ": " + said
}

package client

import (
	"context"
	"log/slog"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Option changes a Client at its making.
type Option func(*options)

type options struct {
	dial    func(ctx context.Context, addr string) (net.Conn, error)
	creds   credentials.TransportCredentials
	timeout time.Duration
	logger  *slog.Logger
}

func defaults() options {
	return options{creds: insecure.NewCredentials(), timeout: 2 * time.Second, logger: slog.Default()}
}

// WithDialer makes connections by dial instead of by TCP.
func WithDialer(dial func(ctx context.Context, addr string) (net.Conn, error)) Option {
	return func(o *options) { o.dial = dial }
}

// WithTransportCredentials secures connections. Without it they are plain.
func WithTransportCredentials(creds credentials.TransportCredentials) Option {
	return func(o *options) { o.creds = creds }
}

// WithDefaultTimeout is how long a call waits whose context has no deadline, and
// must be positive; 2 s without this option. It costs nothing per call, unlike a
// deadline.
func WithDefaultTimeout(d time.Duration) Option {
	return func(o *options) { o.timeout = d }
}

// WithLogger is told of nodes lost and found; slog.Default without this option.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) { o.logger = l }
}

package client

import (
	"context"
	"log/slog"
	"net"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// Option changes a Client at its making.
type Option func(*options)

type options struct {
	dial    func(ctx context.Context, addr string) (net.Conn, error)
	creds   credentials.TransportCredentials
	tls     *TLS // nil: creds as they are
	timeout time.Duration
	memory  time.Duration // of denials; 0: none
	logger  *slog.Logger

	neverDegrade  bool
	clients       int
	cache         string
	cacheRequired bool
	meters        metric.MeterProvider
}

func defaults() options {
	return options{creds: insecure.NewCredentials(), timeout: 2 * time.Second, memory: usualMemory, logger: slog.Default(), dial: dialTCP, clients: 1, meters: otel.GetMeterProvider()}
}

// WithDialer makes connections by dial instead of by TCP. An error of dial other than
// a timeout means that the node refuses connections. Proxies that the environment
// names are never used.
func WithDialer(dial func(ctx context.Context, addr string) (net.Conn, error)) Option {
	return func(o *options) { o.dial = dial }
}

// WithTransportCredentials secures connections by credentials of one's own. Without it
// and WithTLS they are plain.
func WithTransportCredentials(creds credentials.TransportCredentials) Option {
	return func(o *options) { o.creds = creds }
}

// WithDefaultTimeout is how long a call waits whose context has no deadline, and
// must be positive; 2 s without this option. It costs nothing per call, unlike a
// deadline.
func WithDefaultTimeout(d time.Duration) Option {
	return func(o *options) { o.timeout = d }
}

// RememberDenials is for how long, 0 … 1 s, a denial is answered without asking again, where
// one request is asked so often that it has been denied three times in a row, each time
// before it was told to come back. It is 100 ms without this option; 0 remembers nothing.
//
// Such an answer has Remembered set. It is given for the same attributes and cost alone,
// never behind the time that the denial told, and only if nothing but time ends that denial:
// not for concurrency limits, leased policies, or requests with a RequestID. A refund,
// a changed policy or an override may be seen so much later.
func RememberDenials(most time.Duration) Option {
	return func(o *options) { o.memory = most }
}

// WithLogger is told of nodes lost and found; slog.Default without this option.
func WithLogger(l *slog.Logger) Option {
	return func(o *options) { o.logger = l }
}

// NeverDegrade leaves all decisions to the cluster: what it does not answer in time is
// an error. Such a client takes no share of a limit, and others do not count it. It is
// for tools and tests; an application is better served by failure modes.
func NeverDegrade() Option {
	return func(o *options) { o.neverDegrade = true }
}

// WithClientCount is how many clients share the limits while the cluster is out of
// reach, 1 … 1,000,000, for as long as neither the cluster nor the policy cache has told
// that. It is 1 without this option: each client then spends whole limits.
func WithClientCount(n int) Option {
	return func(o *options) { o.clients = n }
}

// WithPolicyCache keeps the policies and the number of clients in a file, so that the
// failure modes hold also for a client that starts when no node can be reached. The
// file is made when the cluster has first been reached, and replaced when something
// changes; its directory must exist. Several clients may use one file, and a file
// may be copied to other machines. It holds no secret.
//
// A file that is not there yet is none. One that cannot be read, or is not valid, is
// told to the logger and not used, unless RequirePolicyCache is given.
func WithPolicyCache(path string) Option {
	return func(o *options) { o.cache = path }
}

// RequirePolicyCache makes it an error of New that the file of WithPolicyCache is not
// there, cannot be read or is not valid.
func RequirePolicyCache() Option {
	return func(o *options) { o.cacheRequired = true }
}

// WithMeterProvider counts in instruments of p: ringlimit.client.degraded, answers that
// no bucket of the cluster made, by mode and why, and ringlimit.client.late_answers,
// decisions of the cluster that came when their call had been given up, by allowed, and
// ringlimit.client.remembered, denials that were answered from memory, and
// ringlimit.client.leased_units, what became of leases.
// Without this option p is that of otel.GetMeterProvider, whose default counts nothing.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) { o.meters = p }
}

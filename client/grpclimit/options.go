package grpclimit

import (
	"context"
	"log/slog"
	"net/netip"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc/status"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/internal/clientip"
)

// Option changes an interceptor at its making. The functions given to options are called
// from many goroutines at once, before the decision, and should not block.
type Option func(*options)

type options struct {
	tenant, plan, route Value
	principals          []principal
	cost                func(context.Context, Call) int64
	refine              func(context.Context, Call, *client.Request)
	hops                hops
	ipv6Bits            int // 1 … 128

	skip       func(context.Context, Call) bool
	onDeny     func(context.Context, Call, client.Decision, *status.Status) error
	perMessage bool
	failOpen   bool
	jitter     float64 // 0 … 1

	logger        *slog.Logger
	meterProvider metric.MeterProvider
}

type principal struct {
	kind string
	id   Value
}

func defaults() options {
	none := func(context.Context, Call) string { return "" }
	return options{
		tenant: none, plan: none, route: defaultRoute,
		cost:     func(context.Context, Call) int64 { return 1 },
		ipv6Bits: clientip.SubscriberBits, jitter: 0.25,
		skip:   func(context.Context, Call) bool { return false },
		logger: slog.Default(), meterProvider: otel.GetMeterProvider(),
	}
}

// Tenant says for whom a call is. Without it, and where it returns "", requests have no
// tenant.
func Tenant(of Value) Option { return func(o *options) { o.tenant = of } }

// Principal adds who calls, in one role: user, api_key, oauth_token, service, or a type
// of your own. Where it returns "" the request has no such principal. Each type has one
// principal, by the last option for it; the type ip replaces the peer's address. A
// request has at most 8.
func Principal(kind string, of Value) Option {
	return func(o *options) { o.principals = append(o.principals, principal{kind, of}) }
}

// Plan says what the caller has subscribed to. Without it requests have no plan.
func Plan(of Value) Option { return func(o *options) { o.plan = of } }

// Route replaces the route, METHOD:/path, of which METHOD is made of A-Z, 0-9, - and _.
// Without it that is GRPC:/package.Service/Method, and for a message of a stream, see
// PerMessage, GRPC-MESSAGE:/package.Service/Method. A server with an
// UnknownServiceHandler has methods that callers make up, and should map them to few.
func Route(of Value) Option { return func(o *options) { o.route = of } }

// Cost says how many tokens a call takes, 1 … 10^9; 0 takes 1. Without it all cost 1.
func Cost(of func(context.Context, Call) int64) Option { return func(o *options) { o.cost = of } }

// MethodCosts says how many tokens the calls of single methods take, 1 … 10^9, by their
// full names, "/package.Service/Method". Others cost 1. It replaces Cost.
func MethodCosts(costs map[string]int64) Option {
	return Cost(func(_ context.Context, c Call) int64 { return costs[c.Method] })
}

// Refine changes the request before it is decided, when all else is in it: for a region,
// free attributes, costs under single policies, or a request id of the caller's own. An
// id must differ from message to message of a stream.
func Refine(f func(context.Context, Call, *client.Request)) Option {
	return func(o *options) { o.refine = f }
}

// ForwardedIP takes the principal ip from the metadata key, such as x-forwarded-for, for
// calls that come from trusted addresses: those of your own proxies, each of which
// appends who called it. The list is read from its end, and the first address that is not
// trusted is the caller; what stands before it is what that caller claims. An entry that
// is no address ends the reading: the proxy that wrote it stands for the caller. Calls
// from elsewhere, and all calls without this option, have the peer's own address. A peer
// without an address, as on a Unix socket, gives no ip. It panics for a prefix that is none.
func ForwardedIP(key string, trusted ...netip.Prefix) Option {
	proxies, err := clientip.Trust(trusted)
	if err != nil {
		panic("grpclimit: " + err.Error())
	}
	return func(o *options) { o.hops = hops{key, proxies} }
}

// IPv6Bits is how much of an IPv6 address counts, 1 … 128 bits. Without it that is 64,
// what one subscriber has: the principal ip is then 2001:db8::/64. With 128 it is the
// address alone, as it is for IPv4.
func IPv6Bits(bits int) Option { return func(o *options) { o.ipv6Bits = bits } }

// Skip leaves calls alone for which f is true, as for health checks. A stream is asked
// about once, when it opens. Without it all calls are limited.
func Skip(f func(context.Context, Call) bool) Option { return func(o *options) { o.skip = f } }

// PerMessage takes from the limits also for each message that a client's stream, or a
// stream both ways, receives, beside the take when it opens. Such takes have the route
// GRPC-MESSAGE:/package.Service/Method and the message in Call, so that policies may tell
// them from calls and Cost may look at their size; a policy that matches both counts both.
// A message that is denied ends the stream: RecvMsg returns the status, again and again.
// A message's permits are held until the next one is asked for.
func PerMessage() Option { return func(o *options) { o.perMessage = true } }

// FailOpen lets calls through that nobody can decide: the limiter is out of reach and the
// policies are not known, or the Client never degrades, or a policy would rather wait for
// longer than it can. They are counted, see WithMeterProvider. Without it they end with
// UNAVAILABLE. A policy that says closed stays closed, and what ends with INTERNAL or
// ALREADY_EXISTS does in any case, or garbage would be a way around every limit.
func FailOpen() Option { return func(o *options) { o.failOpen = true } }

// Jitter spreads the waits in the trailer grpc-retry-pushback-ms: each is longer than the
// decision says by a random part of at most share × wait. It is 0 … 1, and 0.25 without
// this option. RetryInfo always tells the exact wait.
func Jitter(share float64) Option { return func(o *options) { o.jitter = share } }

// OnDeny replaces what a denied call ends with, also by a closed answer. st is what it
// would end with; where f returns nil it does. The trailer is sent all the same.
func OnDeny(f func(ctx context.Context, c Call, d client.Decision, st *status.Status) error) Option {
	return func(o *options) { o.onDeny = f }
}

// WithLogger is told of each kind of fault in the options once; slog.Default without it.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// WithMeterProvider counts in an instrument of p: ringlimit.grpclimit.undecided, calls and
// messages that nobody could decide, by outcome, which is open or unavailable. Without it p
// is that of otel.GetMeterProvider, whose default counts nothing. What is decided by
// failure modes is counted by the Client.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(o *options) { o.meterProvider = p }
}

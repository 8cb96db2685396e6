package grpclimit

import (
	"context"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/internal/clientip"
)

// Call is what is to be decided: a call, or with PerMessage one message of a stream.
type Call struct {
	Method  string // "/package.Service/Method"
	Message any    // a unary call's request, or the message of a stream; nil when a stream opens
	Stream  bool   // it is a stream of either side or both, or one of its messages
}

// Value finds one attribute of a call; "" if it has none.
type Value func(ctx context.Context, c Call) string

// Metadata is the value that the caller sends under key, whose case does not matter; of
// several the last, which a proxy appends behind those of the caller. It is what callers
// claim: use it for what was authenticated before, or by a proxy that nobody can go around.
func Metadata(key string) Value {
	return func(ctx context.Context, _ Call) string {
		all := metadata.ValueFromIncomingContext(ctx, key)
		if len(all) == 0 {
			return ""
		}
		return all[len(all)-1]
	}
}

// defaultRoute tells messages from calls: a limit of streams in flight must not count the
// messages of each, nor must a permit of a stream be refused to its own message.
func defaultRoute(_ context.Context, c Call) string {
	kind := "GRPC:/"
	if c.Stream && c.Message != nil {
		kind = "GRPC-MESSAGE:/"
	}
	return kind + strings.TrimPrefix(c.Method, "/")
}

// request asks for what a call needs.
func (l *limiter) request(ctx context.Context, c Call) client.Request {
	r := client.Request{Tenant: l.tenant(ctx, c), Plan: l.plan(ctx, c), Route: l.route(ctx, c), Cost: l.cost(ctx, c)}
	own := false // an ip of the application
	for i, p := range l.principals {
		own = own || p.kind == "ip"
		if replaced(l.principals[i+1:], p.kind) {
			continue
		}
		if id := p.id(ctx, c); id != "" {
			r.Principals = append(r.Principals, client.Principal{Type: p.kind, ID: id})
		}
	}
	if !own {
		if ip := clientip.Counted(l.hops.caller(ctx), l.ipv6Bits); ip != "" {
			r.Principals = append(r.Principals, client.Principal{Type: "ip", ID: ip})
		}
	}
	if l.refine != nil {
		l.refine(ctx, c, &r)
	}
	return r
}

// replaced says whether a later principal has the same type.
func replaced(later []principal, kind string) bool {
	for _, p := range later {
		if p.kind == kind {
			return true
		}
	}
	return false
}

// decisionKey is where a context has its Decision.
type decisionKey struct{}

// DecisionFrom is how the call was decided whose handler runs with ctx: for the fencing
// token of its permit, or what is left. ok is false where nobody decided it: it was skipped,
// or let through by FailOpen. Of a stream it is the decision when it opened.
func DecisionFrom(ctx context.Context) (d client.Decision, ok bool) {
	p, ok := ctx.Value(decisionKey{}).(*client.Decision)
	if !ok {
		return client.Decision{}, false
	}
	return *p, true
}

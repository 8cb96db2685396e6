package httplimit

import (
	"math/rand/v2"
	"net/http"

	"github.com/ringlimit/ringlimit/api/ratelimit"
	"github.com/ringlimit/ringlimit/client"
)

// Option changes what New returns. The functions that options take are called by many
// goroutines at once.
type Option func(*options)

type options struct {
	fill        []func(*http.Request, *client.Request) error // in the order of the options
	route       func(*http.Request) string                   // nil: by the pattern
	skip        func(*http.Request) bool                     // nil: nothing is skipped
	onDeny      func(http.ResponseWriter, *http.Request, *Denial)
	onError     func(*http.Request, error)
	jitter      func(most int64) int64
	older       ratelimit.Older
	failOpen    bool
	ignoreDelay bool
}

func defaults() options {
	return options{
		jitter:  func(most int64) int64 { return rand.Int64N(most + 1) },
		onDeny:  func(w http.ResponseWriter, _ *http.Request, d *Denial) { d.Answer(w) },
		onError: func(*http.Request, error) {},
	}
}

// Skip lets requests through for which f is true, unasked and uncounted: health checks,
// CORS preflights. Without this option there are none.
func Skip(f func(r *http.Request) bool) Option {
	return func(o *options) { o.skip = f }
}

// FailOpen lets requests through for which there is an error in place of a decision:
// no node answered in time, and the client knows no policies to decide by. Without
// this option they get 503.
//
// It does not overrule a policy: where its failure mode is closed, there is a decision.
// Nor does it let through what is an error of the request itself, 400 or 409.
func FailOpen() Option { return func(o *options) { o.failOpen = true } }

// OnError tells f of what goes wrong: requests without a decision, of which those that
// their client gave up are none, permits that could not be renewed or released, and
// client.ErrPermitLost. err is of a kind of package fault where it comes from the client. It
// may be called after the handler of r has returned, when r may still be read but for
// its body. Without this option nobody is told.
func OnError(f func(r *http.Request, err error)) Option {
	return func(o *options) { o.onError = f }
}

// OnDeny writes the status and body of answers to requests that are not let through, in
// place of d.Answer, which f may call too. The header has RateLimit, RateLimit-Policy,
// Retry-After and Cache-Control by then; f may change it. It is called for all of the
// statuses in Denial.
func OnDeny(f func(w http.ResponseWriter, r *http.Request, d *Denial)) Option {
	return func(o *options) { o.onDeny = f }
}

// Jitter draws by how many seconds a Retry-After is put off, 0 … most, where most is a
// quarter of the wait, but at least 1 and at most 60. Without this option it is any of
// them, by chance, so that those who are denied together do not return together. nil
// puts none off.
func Jitter(f func(most int64) int64) Option {
	return func(o *options) { o.jitter = f }
}

// XRateLimit also sets X-RateLimit-Limit, X-RateLimit-Remaining and X-RateLimit-Reset,
// of the strictest limit, with the reset in seconds since 1970, rounded up. Without this
// option they are not set.
func XRateLimit() Option { return func(o *options) { o.older.XRateLimit = true } }

// OlderRateLimit also sets RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset, as
// drafts before RateLimit had them, of the strictest limit. The reset is in seconds from
// now, or since 1970 if epoch is true; rounded up. Without this option they are not set.
func OlderRateLimit(epoch bool) Option {
	return func(o *options) { o.older.RateLimit, o.older.Epoch = true, epoch }
}

// IgnoreDelay lets requests through at once that a leaky bucket asks to hold. Without
// this option they wait, within their context; one whose deadline is sooner gets 429 at
// once, with the delay as Retry-After.
func IgnoreDelay() Option { return func(o *options) { o.ignoreDelay = true } }

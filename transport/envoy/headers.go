package envoy

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/metadata"

	"github.com/ringlimit/ringlimit/api/ratelimit"
)

// HeadersKey is the metadata by which a caller, in Envoy initial_metadata of the
// grpc_service, asks for headers on responses: some of the words below, with commas.
// Other words ask for nothing.
const HeadersKey = "ringlimit-headers"

// The words of HeadersKey.
const (
	wordRateLimit  = "ratelimit"   // RateLimit and RateLimit-Policy
	wordX          = "x-ratelimit" // X-RateLimit-Limit, -Remaining and -Reset
	wordOlder      = "legacy"      // RateLimit-Limit, -Remaining and -Reset
	wordRetryAfter = "retry-after" // on what is denied
)

// headers are the fields that the caller asked for.
func headers(ctx context.Context, verdicts []verdict) []*core.HeaderValue {
	md, _ := metadata.FromIncomingContext(ctx)
	words := strings.Split(strings.ReplaceAll(strings.Join(md.Get(HeadersKey), ","), " ", ""), ",")
	if len(words) == 1 && words[0] == "" {
		return nil
	}
	limits, head := limitsOf(verdicts)
	h := map[string][]string{}
	if slices.Contains(words, wordRateLimit) {
		ratelimit.Set(h, limits)
	}
	if head != nil {
		older := ratelimit.Older{XRateLimit: slices.Contains(words, wordX), RateLimit: slices.Contains(words, wordOlder)}
		older.Set(h, *head, time.Now())
	}
	if slices.Contains(words, wordRetryAfter) {
		if s, ok := retryAfter(verdicts); ok {
			h[ratelimit.HeaderRetryAfter] = []string{strconv.FormatInt(s, 10)}
		}
	}
	var out []*core.HeaderValue
	for name, values := range h {
		for _, v := range values {
			out = append(out, &core.HeaderValue{Key: strings.ToLower(name), Value: v})
		}
	}
	slices.SortFunc(out, func(a, b *core.HeaderValue) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// limitsOf are the limits of all descriptors, each policy once, where it is strictest,
// and the strictest of all.
func limitsOf(verdicts []verdict) (limits []ratelimit.Limit, head *ratelimit.Limit) {
	add := func(l answerOf, shadow bool) {
		next := ratelimit.Limit{
			Policy: l.GetPolicyId(), Quota: l.GetLimit(), Remaining: l.GetRemaining(), Reset: time.Duration(l.GetResetAfterNs()),
			Allowed: l.GetAllowed(), Shadow: shadow,
		}
		i := slices.IndexFunc(limits, func(x ratelimit.Limit) bool { return x.Policy == next.Policy })
		switch {
		case i < 0:
			limits = append(limits, next)
		case stricterLimit(&next, &limits[i]):
			limits[i] = next
		}
	}
	for i := range verdicts {
		d := verdicts[i].decision
		if d.GetPolicyId() != "" && len(d.GetLimits()) == 0 {
			add(d, false)
		}
		for _, l := range d.GetLimits() {
			add(l, l.GetShadow())
		}
	}
	for i := range limits {
		if l := &limits[i]; !l.Shadow && (head == nil || stricterLimit(l, head)) {
			head = l
		}
	}
	return limits, head
}

// stricterLimit says whether a is stricter than b: it denies and b does not, or it has
// the smaller share left.
func stricterLimit(a, b *ratelimit.Limit) bool {
	if a.Allowed != b.Allowed {
		return b.Allowed
	}
	return a.Remaining*b.Quota < b.Remaining*a.Quota // all are at most 10^9
}

// retryAfter is the longest wait of those that are denied; false if there is none, or
// one for which no wait helps.
func retryAfter(verdicts []verdict) (int64, bool) {
	wait := int64(-1)
	for i := range verdicts {
		v := &verdicts[i]
		if v.outcome == over && v.decision.GetPolicyId() != "" {
			if v.decision.GetRetryAfterNs() < 0 {
				return 0, false
			}
			wait = max(wait, v.decision.GetRetryAfterNs())
		}
	}
	return ratelimit.RetryAfter(time.Duration(wait), func(most int64) int64 { return rand.Int64N(most + 1) })
}

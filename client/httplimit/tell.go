package httplimit

import (
	"net/http"
	"time"

	"github.com/ringlimit/ringlimit/api/ratelimit"
	"github.com/ringlimit/ringlimit/client"
)

// tell sets the fields that say what the limits hold, whether they admit or deny.
func (h *handler) tell(w http.ResponseWriter, d *client.Decision) {
	ratelimit.Set(w.Header(), limitsOf(d))
	if h.older.XRateLimit || h.older.RateLimit {
		if known(d, &d.Answer) {
			h.older.Set(w.Header(), limitOf(&d.Answer), time.Now())
		}
	}
}

// limitsOf are the limits of a decision that say something.
func limitsOf(d *client.Decision) []ratelimit.Limit {
	answers := d.All()
	limits := make([]ratelimit.Limit, 0, len(answers))
	for i := range answers {
		if a := &answers[i]; known(d, a) {
			limits = append(limits, limitOf(a))
		}
	}
	return limits
}

func limitOf(a *client.Answer) ratelimit.Limit {
	return ratelimit.Limit{
		Policy: a.PolicyID, Quota: a.Limit, Remaining: a.Remaining, Reset: a.ResetAfter, Allowed: a.Allowed, Shadow: a.Shadow,
	}
}

// known says whether the numbers of an answer are those of a bucket. Where the failure
// mode was open or closed none was asked, and they are 0, also the time until it is
// fresh: which of a real bucket only one has that is full.
func known(d *client.Decision, a *client.Answer) bool {
	return !d.Degraded || a.ResetAfter > 0 || a.Remaining == a.Limit
}

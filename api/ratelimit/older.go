package ratelimit

import (
	"strconv"
	"time"
)

// Older says which of the older fields are set besides. Each tells one limit alone.
// The zero value sets none.
type Older struct {
	XRateLimit bool // X-RateLimit-Limit, -Remaining and -Reset, the reset in seconds since 1970
	RateLimit  bool // RateLimit-Limit, -Remaining and -Reset, the reset in seconds from now …
	Epoch      bool // … or, with this, since 1970 too
}

// Set puts the fields of one limit into h, in place of what is there; head is the
// strictest limit of the decision. A reset is rounded up, and left out if it is not
// known; now is the time of the response. A limit that stands in no field changes
// nothing.
func (o Older) Set(h map[string][]string, head Limit, now time.Time) {
	if !head.told() {
		return
	}
	delta, epoch := roundUp(max(0, head.Reset)), epochSeconds(now.Add(head.Reset))
	if o.XRateLimit {
		set(h, "X-Ratelimit-", &head, epoch)
	}
	if o.RateLimit {
		if o.Epoch {
			delta = epoch
		}
		set(h, "Ratelimit-", &head, delta)
	}
}

func set(h map[string][]string, prefix string, l *Limit, reset int64) {
	h[prefix+"Limit"] = []string{strconv.FormatUint(l.Quota, 10)}
	h[prefix+"Remaining"] = []string{strconv.FormatUint(l.Remaining, 10)}
	if l.Reset < 0 {
		delete(h, prefix+"Reset")
		return
	}
	h[prefix+"Reset"] = []string{strconv.FormatInt(reset, 10)}
}

// epochSeconds is a moment in whole seconds since 1970, rounded up.
func epochSeconds(t time.Time) int64 {
	whole := t.Unix()
	if t.Nanosecond() > 0 {
		whole++
	}
	return whole
}

package fallback

import "time"

// Outage says for how long the cluster has been out of reach of a client, as far as
// its answers tell. The zero Outage has seen none. It is not safe for concurrent use.
type Outage struct {
	began, last time.Time
	over        bool // the cluster has answered since last
}

// calm is how long the cluster must have been back for the next outage to count as
// another one: who goes and comes every second must not be open for ever.
const calm = 10 * time.Second

// Lasted notes that a request is decided without the cluster, which is known to have
// been out of reach since a time, or not: zero. It returns for how long it has been.
func (o *Outage) Lasted(since, now time.Time) time.Duration {
	if since.IsZero() || since.After(now) {
		since = now
	}
	if o.began.IsZero() || o.over && now.Sub(o.last) > calm {
		o.began = since
	}
	o.last, o.over = now, false
	return now.Sub(o.began)
}

// SoFar is for how long the cluster has been out of reach, as far as was noted; it notes
// nothing.
func (o *Outage) SoFar(now time.Time) time.Duration {
	if o.began.IsZero() || o.over && now.Sub(o.last) > calm {
		return 0
	}
	return now.Sub(o.began)
}

// Answered notes that the cluster has decided a request.
func (o *Outage) Answered() { o.over = true }

package httplimit

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// ErrPermitLost is what OnError is told when a permit ended before its request did: its
// time passed while the cluster could not be reached to renew it, or the cluster lost
// it. The request goes on, and one more may run beside it.
var ErrPermitLost = errors.New("httplimit: the permit of a request ended before the request")

// How permits are given back and renewed.
const (
	releaseTimeout = 5 * time.Second        // of one release; a permit that is not released ends by itself
	releaseWait    = 100 * time.Millisecond // for which a response waits for it
	renewTimeout   = 5 * time.Second        // of one renewal
	renewSoonest   = 50 * time.Millisecond  // between two
	renewUnknown   = time.Second            // until the first one, where it is not said how long a permit lasts
)

// permits are those that a decision granted. A nil one is none.
type permits struct {
	h        *handler
	r        *http.Request
	q        client.Request
	end      context.CancelFunc // gives them back
	released chan struct{}      // gets a value for each that was; never full
	count    int
	hijacked atomic.Bool // the connection outlives the handler, and then ends them
}

// hold keeps the permits of a decision until they are ended, in a goroutine for each.
// began is a time before the decision, from which a permit lasts for at least the time
// that is said.
func (h *handler) hold(r *http.Request, q *client.Request, d *client.Decision, began time.Time) *permits {
	answers := granted(d)
	if len(answers) == 0 {
		return nil
	}
	ctx, end := context.WithCancel(context.WithoutCancel(r.Context()))
	// Muxes write into the request that they serve, so OnError is told of another.
	p := &permits{h: h, r: r.WithContext(r.Context()), q: *q, end: end, count: len(answers)}
	p.released = make(chan struct{}, len(answers))
	for _, a := range answers {
		go p.keep(ctx, a.PermitID, began.Add(a.ResetAfter))
	}
	return p
}

// granted are the answers with a permit, those of shadow policies too: there a permit
// that is not given back would count as one request more.
func granted(d *client.Decision) []client.Answer {
	if len(d.Limits) == 0 {
		if d.PermitID == "" {
			return nil
		}
		return []client.Answer{d.Answer}
	}
	var out []client.Answer
	for i := range d.Limits {
		if d.Limits[i].PermitID != "" {
			out = append(out, d.Limits[i])
		}
	}
	return out
}

// keep renews one permit, whose time ends at until, until ctx ends, and gives it back.
func (p *permits) keep(ctx context.Context, id string, until time.Time) {
	p.renew(ctx, id, until)
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, err := p.h.decider.Release(ctx, p.q, id)
	p.released <- struct{}{}
	if err != nil {
		p.h.onError(p.r, err)
	}
}

// renew returns when ctx ends or the permit is lost. It renews after half of the time
// that is left; what fails is tried again, after half of what is left then.
func (p *permits) renew(ctx context.Context, id string, until time.Time) {
	sure := time.Until(until) > 0 // of until
	timer := time.NewTimer(nextRenewal(until, sure))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		left, held, err := p.renewOnce(ctx, id)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && held:
			until, sure = asked.Add(left), true
		case err == nil, sure && !time.Now().Before(until):
			p.h.onError(p.r, errors.Join(ErrPermitLost, err))
			return
		default:
			p.h.onError(p.r, err)
		}
		timer.Reset(nextRenewal(until, sure))
	}
}

// nextRenewal is how long to wait for it.
func nextRenewal(until time.Time, sure bool) time.Duration {
	if !sure {
		return renewUnknown
	}
	return max(time.Until(until)/2, renewSoonest)
}

func (p *permits) renewOnce(ctx context.Context, id string) (left time.Duration, held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	return p.h.decider.Renew(ctx, p.q, id)
}

// handlerEnded gives the permits back, unless the handler returned and left its
// connection to somebody who goes on with it. The response ends when the handler does:
// it waits a moment, so that a client that has got it finds the permit free.
func (p *permits) handlerEnded(returned bool) {
	if p == nil || returned && p.hijacked.Load() {
		return
	}
	p.end()
	timer := time.NewTimer(releaseWait)
	defer timer.Stop()
	for range p.count {
		select {
		case <-p.released:
		case <-timer.C:
			return
		}
	}
}

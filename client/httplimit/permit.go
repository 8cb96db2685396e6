package httplimit

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// releaseWait is how long a response waits for its permits to be given back, so that a
// client that has got it finds them free.
const releaseWait = 100 * time.Millisecond

// permits are those that a request holds. A nil one is none.
type permits struct {
	held     *client.Held
	hijacked atomic.Bool // the connection outlives the handler, and then gives them back
}

// hold keeps the permits of a decision, if there are any, until they are released. began is
// a time before the decision. The context is that of the request until one is lost.
func (h *handler) hold(r *http.Request, q *client.Request, d *client.Decision, began time.Time) (context.Context, *permits) {
	if d.PermitIDs() == nil {
		return r.Context(), nil
	}
	told := r.WithContext(r.Context()) // muxes write into the request that they serve
	ctx, held := client.Hold(r.Context(), h.decider, *q, d, client.AskedAt(began), client.UntilReleased(),
		client.OnHoldError(func(err error) { h.onError(told, err) }))
	return ctx, &permits{held: held}
}

// handlerEnded gives the permits back, unless the handler returned and left its
// connection to somebody who goes on with it. The response ends when the handler does.
func (p *permits) handlerEnded(returned bool) {
	if p == nil || returned && p.hijacked.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	_ = p.held.Release(ctx) // OnError is told
}

// connEnded gives them back without waiting for that.
func (p *permits) connEnded() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = p.held.Release(ctx) // OnError is told
}

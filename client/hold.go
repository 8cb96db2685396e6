package client

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrPermitLost is told when a permit has ended though it was not released: somebody else
// may have it now, and whoever relied on it must stop. That is so when
//
//   - a renewal says so: its bucket was lost with a majority of its group, or it was
//     released elsewhere;
//   - its time has passed without a renewal that was answered, because no node could be
//     reached or this process was stopped for so long;
//   - the Client was closed, so that nobody will renew it.
//
// It is the cause (context.Cause) of the context that Hold returns, then.
var ErrPermitLost = errors.New("the permit has ended")

// Permits is who gives permits back and renews them; *Client is one. Its methods are called
// by many goroutines at once and return soon after their context has ended.
type Permits interface {
	Release(ctx context.Context, r Request, permitID string) (held bool, err error)
	Renew(ctx context.Context, r Request, permitID string) (left time.Duration, held bool, err error)
}

// How permits are renewed and given back.
const (
	renewAfterGrant = time.Millisecond       // the soonest renewal after a grant or a renewal
	renewAfterError = 50 * time.Millisecond  // the soonest one after one that failed
	renewUnknown    = 100 * time.Millisecond // the first one, where it is not known how long a permit lasts
	renewTimeout    = 5 * time.Second        // of one
	releaseTimeout  = 5 * time.Second        // of one release; a permit that is not released ends by itself
)

// HoldOption changes what Hold does.
type HoldOption func(*Held)

// AskedAt is a moment before the request was first decided, from which its permits last for
// at least the time that the decision says. Without it, and where the request has an id of
// its own, whose decision may be an old one, a renewal soon finds out.
func AskedAt(t time.Time) HoldOption { return func(h *Held) { h.asked = t } }

// OnHoldError tells f of renewals and releases that fail, and once of each permit that is
// lost, with an error that is ErrPermitLost. It is called from goroutines of the holding,
// until all permits have been given back or given up. Without it nobody is told.
func OnHoldError(f func(error)) HoldOption { return func(h *Held) { h.told = f } }

// UntilReleased renews also when the context that Hold was given is done: for a server,
// whose handler may be at work for a while after its caller has gone. Release must be
// called then, or the permits are kept for ever.
func UntilReleased() HoldOption { return func(h *Held) { h.released = true } }

// Held is permits that are kept: each is renewed when half of its time is over, until
// Release, until the context of Hold is done, or until it is lost. A nil *Held is none.
type Held struct {
	by       Permits
	request  Request
	ids      []string
	asked    time.Time // zero: not known
	told     func(error)
	released bool // only Release ends the renewals

	stop    context.CancelFunc // ends the renewals
	end     context.CancelCauseFunc
	lost    chan struct{}
	losing  sync.Once
	renewed []chan struct{} // of each permit: its renewals have ended

	releasing sync.Once
	given     chan struct{} // all are given back, or given up
	mu        sync.Mutex    // guards failed
	failed    error         // of releases
}

// Hold keeps all permits that d, the decision of r, grants; those of policies in shadow mode
// too, whose count would be wrong otherwise. The context that it returns is ctx until a
// permit is lost, which ends it with ErrPermitLost as its cause, or Release is called.
// Where d grants none they are ctx itself and nil.
//
//	d, err := c.Wait(ctx, r)
//	…
//	ctx, held := client.Hold(ctx, c, r, &d)
//	defer held.Release(context.WithoutCancel(ctx))
//
// When ctx is done the renewals end, but nothing is given back: whoever has the permit may
// be at work still. It ends by Release, or by its time.
func Hold(ctx context.Context, by Permits, r Request, d *Decision, opts ...HoldOption) (context.Context, *Held) {
	grants := d.grants()
	if len(grants) == 0 {
		return ctx, nil
	}
	h := &Held{by: by, request: r, told: func(error) {}, lost: make(chan struct{}), given: make(chan struct{})}
	for _, o := range opts {
		o(h)
	}
	renewals := ctx
	if h.released {
		renewals = context.WithoutCancel(ctx)
	}
	renewals, h.stop = context.WithCancel(renewals)
	ctx, h.end = context.WithCancelCause(ctx)
	for _, a := range grants {
		ended := make(chan struct{})
		h.ids, h.renewed = append(h.ids, a.PermitID), append(h.renewed, ended)
		h.start(func() {
			defer close(ended)
			h.keep(renewals, a.PermitID, h.until(&a))
		}, func() {
			defer close(ended)
			h.lose(errClosed)
		})
	}
	return ctx, h
}

// grants are the answers of d with a permit, each once.
func (d *Decision) grants() []Answer {
	if len(d.Limits) == 0 {
		if d.PermitID == "" {
			return nil
		}
		return []Answer{d.Answer}
	}
	var out []Answer
	for i := range d.Limits {
		if d.Limits[i].PermitID != "" {
			out = append(out, d.Limits[i])
		}
	}
	return out
}

// PermitIDs returns the ids of all permits that d grants, to Release or Renew them one by
// one where Hold does not; nil if there are none.
func (d *Decision) PermitIDs() []string {
	var ids []string
	for _, a := range d.grants() {
		ids = append(ids, a.PermitID)
	}
	return ids
}

// until is when a permit ends that is not renewed: a bucket that has just granted one is
// fresh again when that ends. Zero: it is not known.
func (h *Held) until(a *Answer) time.Time {
	if h.asked.IsZero() || a.ResetAfter <= 0 || h.request.RequestID != "" {
		return time.Time{}
	}
	return h.asked.Add(a.ResetAfter)
}

// start runs f beside the caller, as something that Close of a Client waits for; or
// closed, at once, if the client is.
func (h *Held) start(f, closed func()) {
	c, ok := h.by.(*Client)
	switch {
	case !ok:
		go f()
	case !c.begins(f):
		closed()
	}
}

// begins runs f as one of the client's own goroutines; false if the client is closed.
func (c *Client) begins(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		return false
	}
	c.running.Go(f)
	return true
}

// Lost is closed when a permit is lost; see ErrPermitLost. Of a nil Held it never is.
func (h *Held) Lost() <-chan struct{} {
	if h == nil {
		return nil
	}
	return h.lost
}

// Release ends the renewals, and the context that Hold returned, and gives all permits
// back. It returns when that is done, with what went wrong, or when ctx is done, with its
// error: the releases go on then, for at most 5 s. It may be called again.
func (h *Held) Release(ctx context.Context) error {
	if h == nil {
		return nil
	}
	h.releasing.Do(func() { h.release(context.WithoutCancel(ctx)) })
	select {
	case <-h.given:
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.failed
	case <-ctx.Done():
		return reason(ctx)
	}
}

// release starts the releases, once.
func (h *Held) release(ctx context.Context) {
	h.stop()
	h.end(nil)
	var all sync.WaitGroup
	for i, id := range h.ids {
		all.Add(1)
		h.start(func() {
			defer all.Done()
			<-h.renewed[i] // so that none arrives behind the release
			ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
			defer cancel()
			if _, err := h.by.Release(ctx, h.request, id); err != nil {
				h.fail(err)
			}
		}, func() {
			defer all.Done()
			h.fail(errClosed)
		})
	}
	go func() {
		all.Wait()
		close(h.given)
	}()
}

func (h *Held) fail(err error) {
	h.mu.Lock()
	h.failed = errors.Join(h.failed, err)
	h.mu.Unlock()
	h.told(err)
}

// lose tells that a permit has ended, and why if that is known.
func (h *Held) lose(why error) {
	err := ErrPermitLost
	if why != nil {
		err = errors.Join(ErrPermitLost, why)
	}
	h.losing.Do(func() {
		close(h.lost)
		h.end(err)
	})
	h.told(err)
}

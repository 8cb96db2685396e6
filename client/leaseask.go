package client

import (
	"context"
	"errors"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/wire"
)

// leaseAsk makes a call ask for a lease, and takes in what was granted.
type leaseAsk struct {
	leases *leases
	units  int64

	// Written before the call ends, by whoever reads the answer.
	granted int64
	ttl     time.Duration
	unit    uint64
	each    []uint64
}

// askPatience is how long a lease may take to come: after that it is void.
const askPatience = time.Second

// ask asks for a lease of h.
func (l *leases) ask(h *holding, units int64) {
	c := l.client
	ctx, cancel := context.WithTimeout(c.ctx, askPatience)
	defer cancel()
	t := c.terms(ctx)
	t.began = 0 // no failure mode: whoever needs an answer asks for it
	k := newSingle()
	if err := k.begin(&h.request, &t); err != nil {
		h.refuse(c.now(), leasePause)
		return
	}
	a := &leaseAsk{leases: l, units: units}
	k.seq, k.lease = l.sequence.Add(1), a
	l.counts.asked.Add(1)
	g := grant{sequence: k.seq, sent: c.now()} // its time counts from before it is sent
	c.send(&k.call)
	c.wait(ctx, &k.call)
	switch now := c.now(); {
	case k.err == nil && a.granted > 0:
		g.until, g.left = g.sent+int64(a.ttl), a.granted
		l.took(h, g, &granted{decision: k.answer, at: now, unit: a.unit, units: a.each})
		return
	case k.err == nil:
		pause := leasePause // denied for good, or for who knows how long
		if wait := k.answer.RetryAfter; wait > 0 {
			pause = min(wait, leasePause)
		}
		h.refuse(now, pause)
	case errors.Is(k.err, fault.NotLeased):
		h.refuse(now, strictTime)
	default:
		h.refuse(now, leasePause)
	}
	l.acks.end(k.seq)
}

// took hands a lease to its holding.
func (l *leases) took(h *holding, g grant, said *granted) {
	said.decision.Leased = true
	l.counts.granted.Add(uint64(g.left))
	l.client.meters.leased(leaseGranted, g.left)
	l.over(h.refill(l.client.now(), g, said))
	if !l.isClosed() {
		return
	}
	over, back, _ := h.sweep(l.client.now(), true)
	l.over(over)
	for _, g := range back {
		l.giveBack(l.client.ctx, h, g)
	}
}

// take notes what an answer grants.
func (a *leaseAsk) take(d *pb.Decision) {
	g := d.GetLease()
	a.granted, a.ttl, a.unit = int64(min(g.GetUnits(), maxUnits)), time.Duration(g.GetTtlNs()), g.GetUnitCost()
	for _, l := range d.GetLimits() {
		a.each = append(a.each, l.GetUnitCost())
	}
}

// append encodes what the ask adds to a request: the session of leases to its name,
// which is open, and what it wants behind it.
func (a *leaseAsk) append(dst []byte) []byte {
	dst, start := wire.Open(dst, 8)
	dst = wire.AppendUint(dst, 1, uint64(a.units))
	dst = wire.AppendUint(dst, 2, a.leases.acks.mark.Load())
	return wire.Close(dst, start)
}

// leaseSize is at least what append and the session add.
const leaseSize = 40

// over ends leases of which nothing can be spent or returned any more. Units of those
// that still have some are lost.
func (l *leases) over(gs []grant) {
	for _, g := range gs {
		if l.acks.end(g.sequence); g.left > 0 {
			l.counts.expired.Add(uint64(g.left))
			l.client.meters.leased(leaseExpired, g.left)
		}
	}
}

// maxReturns is how many leases are returned at once; others wait.
const maxReturns = 16

// giveBack returns what is left of a lease, unless that is void before it gets there.
func (l *leases) giveBack(ctx context.Context, h *holding, g grant) {
	c := l.client
	if g.left > 0 && l.returned(ctx, h, g) {
		l.counts.returned.Add(uint64(g.left))
		c.meters.leased(leaseReturned, g.left)
		g.left = 0
	}
	l.over([]grant{g})
}

func (l *leases) returned(ctx context.Context, h *holding, g grant) bool {
	c := l.client
	ctx, cancel := context.WithTimeout(ctx, time.Duration(g.until-c.now()))
	defer cancel()
	r := &pb.RefundRequest{
		Subject: h.request.subject(), Cost: g.left,
		Lease: &pb.Sent{Session: l.session, Sequence: g.sequence, AgeNs: uint64(max(0, c.now()-g.sent))},
	}
	hint := ""
	for attempt := 0; ctx.Err() == nil; attempt++ {
		one, stop := context.WithTimeout(ctx, returnPatience)
		_, err := pb.NewLimiterClient(c.pick(&h.request, hint, attempt).conn).Refund(one, r)
		stop()
		if err == nil {
			return true
		}
		var again bool
		if hint, again = c.again(fault.FromStatus(err)); !again {
			return false
		}
		sleep(ctx, returnPause)
	}
	return false
}

// A return is tried until its lease is void, by then the bucket has mostly filled up.
const (
	returnPatience = 250 * time.Millisecond // of one node
	returnPause    = 20 * time.Millisecond
)

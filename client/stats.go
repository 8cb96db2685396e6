package client

import "sync/atomic"

// Stats counts what a client did since it was made.
type Stats struct {
	Requests  uint64 // calls, and requests of batches
	Messages  uint64 // sent on streams; fewer than requests where calls were gathered
	Retries   uint64 // copies sent because of an outage, a silent node or BUSY
	Redirects uint64 // NOT_LEADER answers that were followed
	Parked    uint64 // how often a request had to wait for a leader or a node
	Probes    uint64 // rounds of asking nodes for the routing
	Expired   uint64 // requests that got no answer of the cluster before their deadline

	Degraded      uint64 // answers that no bucket of the cluster made
	Late          uint64 // decisions of the cluster that came when their call had been given up …
	LateAllowed   uint64 // … and of those the ones that it admitted, and so charged
	Leases        uint64 // that were asked for
	Leased        uint64 // requests decided from one; they are in Requests too
	UnitsGranted  uint64 // of leases: each is a cost of 1 …
	UnitsReturned uint64 // … that was not spent and given back …
	UnitsExpired  uint64 // … or lost, because its time was over

	Remembered uint64 // denials that were answered from memory
}

type counters struct {
	requests, messages, retries, redirects, parked, probes, expired atomic.Uint64
	degraded, late, lateAllowed, remembered                         atomic.Uint64
}

// Stats returns the counts so far.
func (c *Client) Stats() Stats {
	n, l := &c.counts, &c.leases.counts
	return Stats{
		Leases: l.asked.Load(), Leased: l.spent.Load(),
		UnitsGranted: l.granted.Load(), UnitsReturned: l.returned.Load(), UnitsExpired: l.expired.Load(),
		Requests: n.requests.Load(), Messages: n.messages.Load(), Retries: n.retries.Load(), Redirects: n.redirects.Load(),
		Parked: n.parked.Load(), Probes: n.probes.Load(), Expired: n.expired.Load(),
		Degraded: n.degraded.Load(), Late: n.late.Load(), LateAllowed: n.lateAllowed.Load(), Remembered: n.remembered.Load(),
	}
}

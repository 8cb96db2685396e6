package bucket

import "testing"

// TestOneShotSessionsDoNotPileUp: callers that ask once and never again, with a leader
// that is never idle, leave no more records than those of some horizons. A sweep that
// visits less than is made would fall behind for ever.
func TestOneShotSessionsDoNotPileUp(t *testing.T) {
	const perHorizon, horizons = 64, 24
	g := newRig(t, 8)
	session := uint64(0)
	var most, settled int
	for h := range horizons {
		for e := range perHorizon {
			reqs := takesOf(0)
			for i := range reqs {
				session++
				reqs[i].ID = ID{Kind: ClientID, Session: session, Sequence: 1, Content: session}
			}
			now := int64(h)*Horizon + int64(e)*Horizon/perHorizon
			g.apply(now, reqs...)
		}
		_, results := g.table.MemoryBytes()
		if most = max(most, results); h == horizons/2 {
			settled = most
		}
	}
	if most > settled*5/4 {
		t.Errorf("the results took %d bytes after %d horizons and %d after %d: they pile up", settled, horizons/2+1, most, horizons)
	}
}

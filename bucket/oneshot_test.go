package bucket

import "testing"

// TestOneShotSessionsDoNotPileUp: callers that come once and never again, with a leader
// that is never idle, leave no more records than those of some horizons, be it that they
// asked for one thing, for many, or under many limits. A sweep that visits less than is
// made would fall behind for ever.
func TestOneShotSessionsDoNotPileUp(t *testing.T) {
	for name, c := range map[string]struct{ requests, takes int }{
		"one": {1, 1}, "eight requests": {8, 1}, "fifty requests": {50, 1}, "five limits": {1, 5}, "ten limits": {1, 10},
	} {
		t.Run(name, func(t *testing.T) { oneShot(t, c.requests, c.takes) })
	}
}

func oneShot(t *testing.T, requests, takes int) {
	const perHorizon, horizons = 32, 40
	g := newRig(t, 8)
	n := 0
	half, most := 0, 0
	for h := range horizons {
		for e := range perHorizon {
			reqs := takesOf(0)
			for i := range reqs {
				reqs[i].ID = ID{
					Kind: ClientID, Session: uint64(n/requests + 1), Sequence: uint64(n%requests + 1), Content: uint64(n + 1),
				}
				reqs[i].Home, reqs[i].Takes = 3, nil
				for k := range takes {
					reqs[i].Takes = append(reqs[i].Takes, Take{
						Slot: 3, Key: spread(uint64(k)), Rule: Rule{Policy: uint64(k + 1), Version: 1, Limit: unit}, Cost: 1,
					})
				}
				n++
			}
			g.apply(int64(h)*Horizon+int64(e)*Horizon/perHorizon, reqs...)
		}
		if most = max(most, g.table.Records()); h == horizons/2 {
			half = most
		}
	}
	if most > half*5/4 {
		t.Errorf("there were %d records after %d horizons and %d after %d: they pile up", half, horizons/2+1, most, horizons)
	}
}

package main

import (
	"context"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// clockApart runs node i in a time namespace whose monotonic clock is i·25
// hours ahead of the machine's (needs root and util-linux). Elapsed time is the
// same everywhere, so no decision may change.
func clockApart(i int) []string {
	if i == 0 {
		return nil
	}
	return fleet.AheadBy(time.Duration(i) * 25 * time.Hour)
}

// playClocks changes leaders between such nodes. A stamp that leaked from one
// clock to another would refill a year's budget or freeze a second's.
func playClocks(ctx context.Context, a *arena, rounds int) error {
	if err := playExact(ctx, a, rounds); err != nil {
		return err
	}
	if err := playRefillFailover(ctx, a, rounds); err != nil || a.short {
		return err
	}
	return playKillLeader(ctx, a, rounds)
}

package trial

import (
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
)

// both takes under two limits at once, which two groups decide: of one tenant, and of
// a region that several tenants share.
func (l *load) both() {
	regions := &rotating{l: l, plan: "region", most: opsPerKey}
	tenants := &rotating{l: l, plan: "both", most: 100}
	for range 3 {
		c := l.caller("both", "")
		l.every(80*time.Millisecond, func(int) {
			tenant, region := tenants.next(), regions.next()
			own := *c
			own.tenant = tenant
			own.names = check.Names{"both-tenant": l.bucket(tenant, "both-tenant"), "both-region": l.bucket(region, "both-region")}
			l.s.history.mu.Lock()
			for _, name := range own.names {
				l.s.spread(name)
			}
			l.s.history.mu.Unlock()
			d, err := own.ask(l.whole, check.Op{Kind: check.Take, Cost: 1}, client.Request{Region: region}, attempt)
			if err == nil && d.Allowed && !d.Degraded && len(d.All()) != 2 { // what one group denies the other is not asked
				l.s.breach("an admission under two limits came with %d: %s", len(d.All()), fmt.Sprint(d))
			}
		})
	}
}

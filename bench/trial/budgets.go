package trial

import (
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
)

// opsPerKey bounds what one key sees, so that its history can be searched. The
// budget of a key is larger: no fault finds it spent.
const opsPerKey = 200

// rotating is a tenant that several callers share until it has seen enough; then
// they go on with a fresh one. Every fault so meets keys that are neither new nor
// spent.
type rotating struct {
	l    *load
	plan string
	most int

	mu     sync.Mutex // guards what follows
	tenant string
	used   int
}

func (r *rotating) next() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tenant == "" || r.used == r.most {
		r.tenant, r.used = r.l.tenant(r.plan), 0
	}
	r.used++
	return r.tenant
}

// budgets takes from buckets without refill and looks at them, with little patience.
func (l *load) budgets(groups map[uint32]string) {
	for range max(3, len(groups)) {
		keys := &rotating{l: l, plan: "deep", most: opsPerKey}
		for i := range 3 {
			c := l.caller("deep", "")
			l.every(60*time.Millisecond, func(n int) {
				t := keys.next()
				o := check.Op{Kind: check.Take, Cost: uint64(1 + n%3)}
				r := client.Request{Cost: int64(o.Cost)}
				if i == 2 && n%2 == 0 {
					o.Kind, o.Cost, r.Cost, r.Look = check.Look, 0, 0, true
				}
				_, _ = l.on(c, t).ask(l.whole, o, r, attempt)
			})
		}
	}
}

// ratePlans are those of refilling buckets. They differ in what a loss gives.
var ratePlans = []string{"rate", "rate-full"}

// rates keeps refilling buckets at their limit.
func (l *load) rates() {
	for _, plan := range ratePlans {
		tenant := l.tenant(plan)
		for range 3 {
			c := l.caller(plan, tenant)
			l.every(20*time.Millisecond, func(int) {
				_, _ = c.ask(l.whole, check.Op{Kind: check.Take, Cost: 1}, client.Request{}, attempt)
			})
		}
	}
}

package sim

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/client"
)

// works are the kinds of load.
var works = map[string]func(*work){
	"frozen": func(k *work) {
		for i := range 3 {
			name := fmt.Sprint("frozen", i)
			k.limit("frozen/"+name, "frozen")
			for c := range 2 {
				k.every(c, 400*time.Millisecond, func(r *rand.Rand) { k.take(c, client.Request{Tenant: name, Plan: "frozen"}, attempt) })
			}
		}
	},
	"refill": func(k *work) {
		for i, plan := range []string{"refill", "leaky", "fixed", "log"} {
			name := fmt.Sprint("refill", i)
			k.limit(plan+"/"+name, plan)
			for c := range 2 {
				k.every(c, 300*time.Millisecond, func(*rand.Rand) { k.take(c, client.Request{Tenant: name, Plan: plan}, attempt) })
			}
		}
	},
	"patient": func(k *work) {
		for i := range 2 {
			name := fmt.Sprint("patient", i)
			k.exactly("frozen/"+name, "frozen")
			for c := range 3 {
				k.every(c, 500*time.Millisecond, func(r *rand.Rand) {
					k.retried(c, client.Request{Tenant: name, Plan: "frozen", RequestID: k.id()}, r)
				})
			}
		}
	},
	"copies": func(k *work) {
		k.exactly("frozen/copies", "frozen")
		k.every(0, 400*time.Millisecond, func(r *rand.Rand) {
			q := client.Request{Tenant: "copies", Plan: "frozen", RequestID: k.id(), Cost: int64(1 + r.IntN(3))}
			var wg sync.WaitGroup
			for c := range k.clients {
				own := rand.New(rand.NewPCG(k.w.plan.seed, r.Uint64()))
				wg.Go(func() { k.retried(c, q, own) })
			}
			wg.Wait()
			time.Sleep(time.Duration(r.Int64N(int64(5 * time.Second))))
			k.retried(r.IntN(len(k.clients)), q, r) // and once more, late
		})
	},
	"pair": func(k *work) {
		for i := range 2 {
			k.limit(fmt.Sprint("pair-tenant/pair", i), "pair-tenant")
			k.limit(fmt.Sprint("pair-region/region", i), "pair-region")
			k.setup.Spread = append(k.setup.Spread, fmt.Sprint("pair-tenant/pair", i), fmt.Sprint("pair-region/region", i))
		}
		for c := range 3 {
			k.every(c, 500*time.Millisecond, func(r *rand.Rand) {
				k.take(c, client.Request{Tenant: fmt.Sprint("pair", r.IntN(2)), Region: fmt.Sprint("region", r.IntN(2)), Plan: "pair"}, 2*attempt)
			})
		}
	},
	"permits": func(k *work) {
		k.limit("permits/permits", "permits")
		for c := range 3 {
			k.every(c, 300*time.Millisecond, func(r *rand.Rand) { k.hold(c, r) })
		}
	},
	"changed": func(k *work) {
		k.setup.Changed = map[string]map[uint64]bucket.Limit{"changed/changed": k.versions}
		k.limit("changed/changed", "changed")
		for c := range 2 {
			k.every(c, 300*time.Millisecond, func(*rand.Rand) { k.take(c, client.Request{Tenant: "changed", Plan: "changed"}, attempt) })
		}
		k.every(0, 2*time.Second, func(r *rand.Rand) { k.change(r) })
	},
	"looks": func(k *work) {
		for c := range 2 {
			k.every(c, 400*time.Millisecond, func(r *rand.Rand) {
				q := client.Request{Tenant: fmt.Sprint("frozen", r.IntN(3)), Plan: "frozen", Look: true, StaleOK: r.IntN(4) == 0}
				if q.StaleOK {
					k.stale(c, q)
				} else {
					k.take(c, q, attempt)
				}
			})
		}
	},
}

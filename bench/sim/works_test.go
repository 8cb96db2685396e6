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
			k.every(2, 600*time.Millisecond, func(r *rand.Rand) { k.take(2, client.Request{Tenant: name, Plan: "frozen"}, waiting) })
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
	// stare: buckets that one client spends from fast, while another looks at them.
	"stare": func(k *work) {
		for i := range 4 {
			name := fmt.Sprint("stare", i)
			k.limit("frozen/"+name, "frozen")
			k.every(0, 100*time.Millisecond, func(*rand.Rand) { k.take(0, client.Request{Tenant: name, Plan: "frozen"}, attempt) })
			k.every(2, 20*time.Millisecond, func(*rand.Rand) { k.take(2, client.Request{Tenant: name, Plan: "frozen", Look: true}, attempt) })
		}
	},
	// again: what one leader admitted is asked again of the next one, under its id and
	// at once: before replicas that remember different ids have had a second to be
	// compared. Nothing is asked twice of one leader, which alone would tell them apart.
	"again": func(k *work) {
		for i := range 6 {
			a := &heir{k: k, tenant: fmt.Sprint("again", i), client: i % len(k.clients)}
			k.limit("frozen/"+a.tenant, "frozen")
			k.every(a.client, 200*time.Millisecond, a.next)
		}
	},
	// losses: what counts as full after a loss of its group's state, or is salvaged, by
	// several algorithms, of which some take units under ids.
	"losses": func(k *work) {
		k.setup.OnLoss = make(map[string]bucket.Loss)
		for i, plan := range lossPlans {
			name := fmt.Sprint(plan, "/loss", i)
			k.limit(name, plan)
			k.setup.OnLoss[name] = k.loss(plan)
			k.every(i%len(k.clients), 250*time.Millisecond, func(r *rand.Rand) {
				q := client.Request{Tenant: fmt.Sprint("loss", i), Plan: plan, Cost: int64(1 + r.IntN(2))}
				if r.IntN(3) == 0 {
					q.RequestID = k.id()
				}
				k.take(i%len(k.clients), q, attempt)
			})
		}
	},
}

// lossPlans are the policies of lossFile, each the plan of its requests.
var lossPlans = []string{"full", "full-refill", "full-window", "salvage", "salvage-refill", "salvage-window"}

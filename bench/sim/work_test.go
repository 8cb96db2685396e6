package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/client"
)

// clientHosts are where clients live: one client library each.
var clientHosts = []string{"c0", "c1", "c2"}

const (
	attempt  = 200 * time.Millisecond // of one try, so that outcomes stay unknown
	waiting  = 2 * time.Second        // of one that outlasts an election, so that the client library retries
	patience = 90 * time.Second       // for the answer of a request that is retried under its id, which is kept for two minutes

	enough      = check.DefaultMinAnswers * 5 / 4 // admissions, some of which may not count
	fillsWithin = 20 * time.Second                // virtual time to get there
)

// work is what is asked of the cluster, and the history of the answers.
type work struct {
	w       *world
	clients []*client.Client
	stop    chan struct{} // closed when no new request is to be made
	wg      sync.WaitGroup
	number  atomic.Uint64 // of requests
	retries uint64        // by client libraries, once the load has ended

	mu       sync.Mutex // guards what follows
	ops      []check.Op
	setup    check.Setup
	versions map[uint64]bucket.Limit // of the policy that changes
}

// newWork begins the load of the plan.
func (w *world) newWork() *work {
	k := &work{w: w, stop: make(chan struct{}), versions: make(map[uint64]bucket.Limit)}
	k.setup.Limits = make(map[string]bucket.Limit)
	for _, h := range clientHosts {
		k.clients = append(k.clients, w.dial(h))
	}
	for _, name := range w.plan.works {
		works[name](k)
	}
	return k
}

// limit tells the checkers the limit of a bucket, which is that of a policy.
func (k *work) limit(bucket, policy string) {
	p, _ := k.w.set.Find(policy)
	k.setup.Limits[bucket] = p.Limit
}

// loss is what the buckets of a policy count as after a loss of the state.
func (k *work) loss(policy string) bucket.Loss {
	p, _ := k.w.set.Find(policy)
	return p.OnStateLoss.Loss()
}

// exactly says moreover that all of the bucket is asked for and every request
// retried until it has an answer.
func (k *work) exactly(bucket, policy string) {
	k.limit(bucket, policy)
	k.setup.Exactly = append(k.setup.Exactly, bucket)
}

// every calls f again and again, with pauses of gap on average, until the load ends.
func (k *work) every(c int, gap time.Duration, f func(*rand.Rand)) {
	r := rand.New(rand.NewPCG(k.w.plan.seed, k.number.Add(1)))
	k.wg.Go(func() {
		for {
			select {
			case <-k.stop:
				return
			case <-time.After(gap/2 + time.Duration(r.Int64N(int64(gap)))):
				f(r)
			}
		}
	})
}

// fill lets the load go on where the faults have kept so much from being admitted that
// the run would be void.
func (k *work) fill() {
	for begun := time.Now(); k.admitted() < enough && time.Since(begun) < fillsWithin; time.Sleep(200 * time.Millisecond) {
	}
}

func (k *work) admitted() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.ops {
		if o := &k.ops[i]; o.Kind == check.Take && o.Outcome == check.Admitted && !o.Degraded {
			n++
		}
	}
	return n
}

// end stops the load and waits for the last answers.
func (k *work) end() {
	close(k.stop)
	k.wg.Wait()
	for _, c := range k.clients {
		k.retries += c.Stats().Retries
		_ = c.Close()
	}
}

// use spends what is left of the buckets that are to be exact: by tens first, then
// one by one, a few at a time.
func (k *work) use() {
	var wg sync.WaitGroup
	for i, tenant := range []string{"patient0", "patient1", "copies"} {
		if !slices.Contains(k.setup.Exactly, "frozen/"+tenant) {
			continue
		}
		r := rand.New(rand.NewPCG(k.w.plan.seed, uint64(i)))
		wg.Go(func() {
			for k.retried(i, client.Request{Tenant: tenant, Plan: "frozen", RequestID: k.id(), Cost: 10}, r) == check.Admitted {
			}
			for range 10 {
				k.retried(i, client.Request{Tenant: tenant, Plan: "frozen", RequestID: k.id()}, r)
			}
		})
	}
	wg.Wait()
}

// probes are how many tenants stand for all groups: some for each.
const probes = 24

// served takes once from the tenants that stand for all groups until each answers.
func (k *work) served(within time.Duration) (time.Duration, error) {
	begun := time.Now()
	for i := range probes {
		q := client.Request{Tenant: fmt.Sprint("served", i), Plan: "refill", RequestID: k.id()}
		for !k.asked(i%len(k.clients), q) {
			if time.Since(begun) > within {
				return within, fmt.Errorf("tenant %s is not served after %v", q.Tenant, within)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return time.Since(begun), nil
}

// asked takes once, and says whether there was an answer.
func (k *work) asked(c int, q client.Request) bool {
	o := k.take(c, q, attempt)
	return o == check.Admitted || o == check.Denied
}

package sim

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

var liveness = flag.Int("liveness", 1, "how many permanent faults of each kind TestLiveness makes")

// permanent are faults of a minority that stay, and how long the rest may take to
// serve every slot (RELIABILITY's figures: the watchdog of a hung state machine needs
// longer than a broken link).
var permanent = []struct {
	kind   string
	within time.Duration
}{
	{"kill-leader", 2 * time.Second},
	{"kill", 2 * time.Second},
	{"freeze-leader", 2 * time.Second},
	{"isolate-leader", 2 * time.Second},
	{"one-way", 2 * time.Second},
	{"pair", 2 * time.Second},
	{"flap", 4 * time.Second},
	{"loss", 4 * time.Second},
	{"hung-apply", 4 * time.Second},
	{"hung-store", 2 * time.Second},
	{"full-disk", 2 * time.Second},
}

// TestLiveness: with one fault of a minority that does not end, every group serves
// again within its time (I15).
func TestLiveness(t *testing.T) {
	for _, f := range permanent {
		t.Run(f.kind, func(t *testing.T) {
			var took []time.Duration
			for i := range *liveness {
				seed := *first + uint64(i)
				d, why := lives(t, seed, f.kind, f.within)
				took = append(took, d)
				if why != nil {
					t.Errorf("seed %d: %v", seed, why)
				}
			}
			slices.Sort(took)
			fmt.Printf("%-15s %d times: serves again p50 %v, max %v (at most %v)\n", f.kind, len(took),
				took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), f.within)
		})
	}
}

// lives makes one permanent fault at a random moment and returns how long it took
// until every group served.
func lives(t *testing.T, seed uint64, kind string, within time.Duration) (took time.Duration, why error) {
	dir := shm(t)
	synctest.Test(t, func(*testing.T) {
		r := rand.New(rand.NewPCG(seed, 0x6c697665))
		p := newPlan(seed)
		p.nodes, p.later, p.drain, p.remove, p.works = 3+2*r.IntN(2), 0, false, false, []string{"refill"}
		w := newWorld(p, dir)
		defer w.close()
		w.begin()
		if _, why = w.eventually(bootsWithin, w.unhealthy); why != nil {
			return
		}
		k := w.newWork()
		defer k.end()
		if _, why = k.served(servesWithin); why != nil { // clients know the way
			return
		}
		time.Sleep(12*time.Second + time.Duration(r.Int64N(int64(time.Second)))) // owners lead
		over := make(chan struct{})
		go func() {
			nemeses[kind](w, breakage{kind: kind, last: 30 * time.Second, pick: r.Uint64()})
			close(over)
		}()
		took, why = k.everywhere(within)
		<-over
	})
	return took, why
}

// everywhere asks for all tenants at once until each has an answer.
func (k *work) everywhere(within time.Duration) (time.Duration, error) {
	type answer struct {
		tenant string
		took   time.Duration
	}
	answers := make(chan answer, probes)
	begun := time.Now()
	time.Sleep(5 * time.Millisecond) // the fault has begun
	for i := range probes {
		go func() {
			q := client.Request{Tenant: fmt.Sprint("alive", i), Plan: "refill", RequestID: k.id()}
			r := rand.New(rand.NewPCG(k.w.plan.seed, uint64(i)))
			for time.Since(begun) < 3*within && !k.asked(i%len(k.clients), q) {
				time.Sleep(time.Duration(r.Int64N(int64(10 * time.Millisecond))))
			}
			answers <- answer{q.Tenant, time.Since(begun)}
		}()
	}
	var last answer
	for range probes {
		if a := <-answers; a.took > last.took {
			last = a
		}
	}
	if last.took > within {
		return last.took, fmt.Errorf("tenant %s was served after %v, at most %v is allowed", last.tenant, last.took, within)
	}
	return last.took, nil
}

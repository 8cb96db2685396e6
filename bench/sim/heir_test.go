package sim

import (
	"context"
	"math/rand/v2"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
)

// heir takes from one bucket, and asks again whenever it has a new leader. One
// goroutine owns it.
type heir struct {
	k      *work
	tenant string
	client int

	term uint64           // of the leader that answered last
	last []client.Request // what it admitted, and what had no answer since: the newest few
}

// next takes once under a new id. An answer of a new leader makes all be asked again
// that the one before answered, or did not.
func (a *heir) next(r *rand.Rand) {
	q := client.Request{Tenant: a.tenant, Plan: "frozen", RequestID: a.k.id()}
	outcome, term := a.ask(q)
	known := outcome == check.Admitted || outcome == check.Denied
	if known && term != a.term {
		for _, old := range a.last {
			a.k.retried(a.client, old, r)
		}
		a.term, a.last = term, a.last[:0]
	}
	if outcome != check.Denied {
		a.last = append(a.last, q)[max(0, len(a.last)-3):]
	}
}

// ask takes once, and says in which term it was answered; 0: in none.
func (a *heir) ask(q client.Request) (check.Outcome, uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), attempt)
	defer cancel()
	o := a.k.op(a.client, &q)
	d, err := a.k.clients[a.client].Decide(ctx, q)
	return a.k.answer(o, &q, &d, err), d.Term
}

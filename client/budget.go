package client

import "sync/atomic"

// budget limits retries on a leader that is busy to a tenth of the requests, so
// that clients never keep an overload alive. It counts in tenths of a retry.
type budget struct{ tenths atomic.Int64 }

const (
	budgetStart = 10 * 10   // ten retries for a client that has just started
	budgetMax   = 10 * 1000 // what a long quiet time may save up
)

func newBudget() *budget {
	b := new(budget)
	b.tenths.Store(budgetStart)
	return b
}

// earn counts n requests.
func (b *budget) earn(n int64) {
	if b.tenths.Load() < budgetMax {
		b.tenths.Add(n)
	}
}

// spend pays for one retry; false if there is nothing left.
func (b *budget) spend() bool {
	for {
		v := b.tenths.Load()
		if v < 10 {
			return false
		}
		if b.tenths.CompareAndSwap(v, v-10) {
			return true
		}
	}
}

package simnet

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSignalWakesEachOnce: who waits again is not woken by the others.
func TestSignalWakesEachOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const waiters = 3
		var mu sync.Mutex
		var s signal
		var wakes int
		ended := false
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() {
				mu.Lock()
				defer mu.Unlock()
				for !ended {
					s.wait(&mu, time.Time{})
					wakes++
				}
			})
		}
		give := func(last bool) int {
			synctest.Wait()
			mu.Lock()
			wakes, ended = 0, last
			s.give()
			mu.Unlock()
			synctest.Wait()
			return wakes
		}
		for range 3 {
			if n := give(false); n != waiters {
				t.Errorf("%d waiters were woken %d times", waiters, n)
			}
		}
		give(true)
		all.Wait()
	})
}

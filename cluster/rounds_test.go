package cluster

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// As many calls as may be are under way; what is asked meanwhile goes together into
// the next one.
func TestRoundsGather(t *testing.T) {
	for _, c := range []struct {
		most int
		want [][]int // the calls, by their items
		last time.Duration
	}{
		{1, [][]int{{0}, {1, 2, 3}}, 2 * time.Second},
		{2, [][]int{{0}, {1}, {2, 3}}, 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex // guards calls
			var calls [][]int
			var asking sync.WaitGroup
			r := rounds[int]{most: c.most}
			r.do = func(items []int) []error {
				mu.Lock()
				calls = append(calls, slices.Clone(items))
				mu.Unlock()
				time.Sleep(time.Second)
				return nil
			}
			begun := time.Now()
			for i := range 4 {
				asking.Go(func() { _ = r.ask(context.Background(), i) })
				time.Sleep(100 * time.Millisecond)
			}
			asking.Wait()
			r.wg.Wait()
			if !slices.EqualFunc(calls, c.want, slices.Equal) || time.Since(begun) != c.last {
				t.Errorf("%d at once: calls %v until %v, want %v until %v", c.most, calls, time.Since(begun), c.want, c.last)
			}
		})
	}
}

// The next round waits for all who joined the one before to be through.
func TestRoundsWaitForThoseWhoJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rounds[int]{most: 1, do: func([]int) []error { return nil }}
		through, err := r.join(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		done := false
		go func() { _ = r.ask(t.Context(), 2); done = true }() // looked at when it waits, or has ended
		time.Sleep(time.Minute)
		if done {
			t.Fatal("a round began before the one before it was over")
		}
		through()
		synctest.Wait()
		if !done {
			t.Fatal("the next round did not begin")
		}
	})
}

package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// watch looks at every group while a scenario changes the cluster.
type watch struct {
	stopping chan struct{}
	wg       sync.WaitGroup // the one goroutine

	broken []string // once it has ended
	looks  int
}

// watchMajorities wants every group to have a live majority of voters at all
// times: it must not be without one in two looks, half a second apart.
func (a *arena) watchMajorities(ctx context.Context) *watch {
	w := &watch{stopping: make(chan struct{})}
	w.wg.Go(func() {
		below := map[uint32]int{} // looks in a row
		for {
			if st, err := a.fleet.Status(ctx); err == nil {
				w.looks++
				for _, g := range st.GetGroups() {
					if g.GetSlots() == 0 {
						continue // it begins or ends, and nobody depends on it
					}
					voters, live := 0, 0
					for _, m := range g.GetMembers() {
						if m.GetRole() == "joining" {
							continue
						}
						if voters++; m.GetReachable() {
							live++
						}
					}
					if below[g.GetId()]++; 2*live > voters {
						below[g.GetId()] = 0
					}
					if below[g.GetId()] == 2 {
						w.broken = append(w.broken, fmt.Sprintf("group %d has %d live voters of %d: %s", g.GetId(), live, voters, g.GetProblem()))
					}
				}
			}
			select {
			case <-time.After(500 * time.Millisecond):
			case <-w.stopping:
				return
			case <-ctx.Done():
				return
			}
		}
	})
	return w
}

// stop ends the watch and returns what it saw.
func (w *watch) stop() []string {
	close(w.stopping)
	w.wg.Wait()
	return w.broken
}

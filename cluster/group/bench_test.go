package group

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// BenchmarkTake measures decisions by three replicas in one process, joined by an
// in-memory transport without delay, with so many callers of one take each.
func BenchmarkTake(b *testing.B) {
	for _, callers := range []int{1, 16, 64, 256, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { benchTake(b, callers, 1) })
	}
	b.Run("callers=16/batch=500", func(b *testing.B) { benchTake(b, 16, 500) })
}

func benchTake(b *testing.B, callers, batch int) {
	w := &world{t: new(testing.T), net: newMemNet(), nodes: map[string]*testNode{}}
	w.net.hook(hooks{delay: func(_, _ string, _ any) time.Duration { return 0 }})
	w.start(3, nil)
	l := w.holdAll()
	defer w.stop()
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for c := range callers {
		n := b.N/callers + 1
		wg.Go(func() {
			var out Outcome
			reqs := make([]Request, batch)
			seq := uint64(0)
			for i := 0; i < n; i += batch {
				for j := range reqs {
					reqs[j] = first(ask(uint64(c*1000+(i+j)%1000), perSecond(1_000_000), 1, mix(uint64(c)), seq+1))
					reqs[j].ID.Acked = seq
					seq++
				}
				if err := l.r.Take(context.Background(), reqs, &out); err != nil {
					b.Log(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	b.ReportMetric(float64(l.r.metrics.EntryRequests.Load())/float64(l.r.metrics.Entries.Load()), "decisions/entry")
}

package transport_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// cpu reports the processor time of the whole process for one operation, both
// sides together: unlike the wall clock it hardly feels the neighbours.
func cpu(b *testing.B) (done func()) {
	used := func() (ns int64) {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	began := used()
	return func() { b.ReportMetric(float64(used()-began)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkCall is the round trip of an echo over loopback, by one caller and by
// many.
func BenchmarkCall(b *testing.B) {
	f := &field{t: b, addrs: map[string]string{}}
	ns := f.mesh("a", "b")
	body := make([]byte, 100)
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			b.ReportAllocs()
			defer cpu(b)()
			b.SetParallelism(callers / 2)
			if callers == 1 {
				for b.Loop() {
					if _, err := ns[0].Call(b.Context(), "b", 1, body); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := ns[0].Call(b.Context(), "b", 1, body); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// BenchmarkCommit is one entry after the other through raft on three nodes over
// loopback, all in this process.
func BenchmarkCommit(b *testing.B) {
	f := &field{t: b, addrs: map[string]string{}}
	all := group(b, f.mesh("a", "b", "c"), func(c *raft.Config) {
		c.TrailingLogs = 128
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 5*time.Second, 5*time.Second, 5*time.Second // a busy machine
	})
	leader := f.leads(all...)
	for _, size := range []int{100, 20_000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.ReportAllocs()
			defer cpu(b)()
			data := make([]byte, size)
			for b.Loop() {
				if err := leader.Apply(data, time.Second).Error(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

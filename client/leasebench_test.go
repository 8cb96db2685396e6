package client

import (
	"fmt"
	"log/slog"
	"math"
	"testing"
)

// stocked is a client that holds tokens of keys without end, and knows no node.
func stocked(tb testing.TB, keys int, said granted) (*Client, []Request) {
	c, err := New([]string{"a"}, WithDialer(nobody), NeverDegrade(), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	requests := make([]Request, keys)
	for i := range requests {
		requests[i] = Request{Tenant: fmt.Sprint("tenant-", i), Principals: []Principal{{"api_key", "k"}}, Route: "GET:/v1/items/42", Plan: "standard"}
		c.leases.hint(&requests[i])
		h := c.leases.find(requests[i].appendSubject(nil))
		said.decision.Allowed, said.decision.Leased = true, true
		h.refill(c.now(), grant{sequence: uint64(i + 1), sent: c.now(), until: math.MaxInt64, left: math.MaxInt64 / 4}, &said)
	}
	return c, requests
}

// TestDecisionFromALeaseAllocatesNothing: of a request with one limit.
func TestDecisionFromALeaseAllocatesNothing(t *testing.T) {
	c, requests := stocked(t, 1, granted{unit: 1})
	if n := testing.AllocsPerRun(1000, func() {
		if d, err := c.Decide(t.Context(), requests[0]); err != nil || !d.Leased {
			t.Fatalf("%+v, %v", d, err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkDecideFromALease(b *testing.B) {
	several := granted{unit: 1, units: []uint64{1, 2}, decision: Decision{Limits: make([]Answer, 2)}}
	for name, k := range map[string]struct {
		keys int
		said granted
	}{"one key": {1, granted{unit: 1}}, "1000 keys": {1000, granted{unit: 1}}, "two limits": {1, several}} {
		b.Run(name, func(b *testing.B) {
			c, requests := stocked(b, k.keys, k.said)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if d, err := c.Decide(b.Context(), requests[i%len(requests)]); err != nil || !d.Leased {
					b.Fatal(d, err)
				}
				i++
			}
		})
		b.Run(name+", parallel", func(b *testing.B) {
			c, requests := stocked(b, k.keys, k.said)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := 0; pb.Next(); i++ {
					if d, err := c.Decide(b.Context(), requests[i%len(requests)]); err != nil || !d.Leased {
						b.Fatal(d, err)
					}
				}
			})
		})
	}
}

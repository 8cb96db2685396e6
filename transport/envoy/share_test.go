package envoy_test

import (
	"fmt"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/transport/envoy"
)

// TestSharesAreNeverMoreThanTheLimit: while the cluster decides nothing, each of three
// nodes admits a third, rounded down, and again in each window.
func TestSharesAreNeverMoreThanTheLimit(t *testing.T) {
	f := &fake{set: perAddress, nodes: 3, results: []*pb.Result{failed(fault.New(fault.NoLeader, "none"))}}
	f.serve(t, func(t *testing.T, s *envoy.Server) {
		admitted := func(address string, asks int, hits uint64) (n int) {
			for range asks {
				r, err := s.ShouldRateLimit(t.Context(), of(withHits(entries("remote_address", address), hits)))
				if err != nil {
					t.Fatal(err)
				}
				if r.GetOverallCode() == rls.RateLimitResponse_OK {
					n++
				}
			}
			return n
		}
		want := func(got, want int, what string) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %d admitted, want %d", what, got, want)
			}
		}
		want(admitted("a", 10, 1), 3, "a third of 10")
		want(admitted("a", 1, 0), 0, "a look at what is used up")
		want(admitted("b", 1, 4), 0, "more than a third at once")
		want(admitted("b", 10, 1), 3, "after a denial, which takes nothing")
		time.Sleep(2 * time.Minute)
		want(admitted("a", 10, 1), 3, "two windows later")
		f.nodes = 5
		want(admitted("a", 10, 1), 2, "a fifth of 10")
		f.nodes = 11
		want(admitted("a", 10, 1), 0, "what is too small to divide")
		f.nodes = 0
		want(admitted("a", 20, 1), 10, "no node but this one")
	})
}

// TestKeysBeyondTheBoundAreNotDecided: those that have a bucket go on.
func TestKeysBeyondTheBoundAreNotDecided(t *testing.T) {
	if testing.Short() {
		t.Skip("65,536 decisions")
	}
	f := &fake{set: perAddress, results: []*pb.Result{failed(fault.New(fault.NoLeader, "none"))}}
	f.serve(t, func(t *testing.T, s *envoy.Server) {
		in := of()
		ask := func(from, to int) (failed bool) {
			in.Descriptors = in.Descriptors[:0]
			for i := from; i < to; i++ {
				in.Descriptors = append(in.Descriptors, entries("remote_address", fmt.Sprint(i)))
			}
			_, err := s.ShouldRateLimit(t.Context(), in)
			return err != nil
		}
		for i := 0; i < 65_536; i += 512 {
			if ask(i, i+512) {
				t.Fatalf("%d keys are too many", i)
			}
		}
		if !ask(70_000, 70_001) {
			t.Error("a key beyond the bound was decided")
		}
		if ask(5, 6) {
			t.Error("a key that has a bucket was not")
		}
	})
}

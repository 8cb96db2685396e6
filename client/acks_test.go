package client

import (
	"math/rand/v2"
	"testing"
)

// TestAcknowledgedIsTheLongestEndedPrefix compares with a map, sequences ending
// in random order within random spans.
func TestAcknowledgedIsTheLongestEndedPrefix(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		var a acks
		ended := map[uint64]bool{}
		want := uint64(0)
		var open []uint64
		next := uint64(1)
		span := 1 + r.IntN(20_000)
		for range 3000 {
			for len(open) < 1+r.IntN(50) {
				skip := 1 + uint64(r.IntN(1+span/50)) // these end at once
				var block []uint64
				for range skip - 1 {
					ended[next] = true
					block = append(block, next)
					next++
				}
				a.end(block...)
				open = append(open, next)
				next++
			}
			i := r.IntN(len(open))
			s := open[i]
			open = append(open[:i], open[i+1:]...)
			ended[s] = true
			a.end(s, 0)
			if r.IntN(4) == 0 {
				a.end(s) // twice does no harm
			}
			for ended[want+1] {
				want++
				delete(ended, want)
			}
			if got := a.mark.Load(); got != want {
				t.Fatalf("seed %d: after %d: mark %d, want %d", seed, s, got, want)
			}
			if next > 200_000 {
				break
			}
		}
	}
}

func BenchmarkAcks(b *testing.B) {
	var a acks
	for s := uint64(1); b.Loop(); s += 2 {
		a.end(s+1, s)
	}
}

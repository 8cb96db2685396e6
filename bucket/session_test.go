package bucket

import (
	"math/rand/v2"
	"testing"
)

// TestResultsAreToldApartHoweverMany lets a session have few results in a slot and many,
// with sequences out of order and equal in what marks keep of them: each that is not
// acknowledged is known, also in a restored table, and none that is.
func TestResultsAreToldApartHoweverMany(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 5))
		g := newRig(t, 2)
		kept, acked, top := map[uint64]bool{}, uint64(0), uint64(0)
		take := func(seq uint64, want Code) {
			t.Helper()
			r := with(client(seq, acked), 1)
			if got, _ := g.peek(0, r); got.Code != want {
				t.Fatalf("seed %d, peek at %d: code %d, want %d", seed, seq, got.Code, want)
			}
			g.expect("take", 0, r, want)
		}
		for range 60 {
			for range rng.IntN(14) {
				seq := top + 1 + rng.Uint64N(3)
				switch rng.IntN(3) {
				case 0:
					seq = max(top, 1<<17) - 1<<16*rng.Uint64N(2) // of the same mark
				case 1:
					seq = acked + 1 + rng.Uint64N(top-acked+20)
				}
				if seq <= acked {
					continue
				}
				want := Admitted
				if kept[seq] {
					want = Repeated
				}
				take(seq, want)
				kept[seq], top = true, max(top, seq)
			}
			if rng.IntN(3) == 0 {
				acked += rng.Uint64N(top - acked + 1)
			}
			for seq := range kept {
				if seq <= acked {
					delete(kept, seq)
					take(seq, TooOld)
				} else if rng.IntN(4) == 0 {
					take(seq, Repeated)
				}
			}
			checkBooks(t, g.table)
			if rng.IntN(4) == 0 {
				g.table = restored(t, g.table)
				checkBooks(t, g.table)
			}
		}
	}
}

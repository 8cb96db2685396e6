package simulate_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/cmd/rlnode/simulate"
)

// between is a random whole number of low … high, each size as likely as any other.
func between(r *rand.Rand, low, high int64) int64 {
	x := float64(low) * math.Exp(r.Float64()*math.Log(float64(high)/float64(low)))
	return min(max(int64(x), low), high)
}

const month = int64(30 * 24 * time.Hour)

func randomSpec(r *rand.Rand, algorithm string) spec {
	s := spec{algorithm: algorithm, amount: between(r, 1, 1_000_000), width: between(r, int64(time.Millisecond), month)}
	if r.IntN(4) == 0 {
		s.amount = 1 + r.Int64N(10)
	}
	if r.IntN(4) == 0 { // as people write them
		s.width = []int64{int64(time.Second), int64(time.Minute), int64(time.Hour), month}[r.IntN(4)]
	}
	s.burst = s.amount
	if r.IntN(2) == 0 {
		s.burst = between(r, 1, min(4*s.amount, 1_000_000))
	}
	return s
}

func (s spec) yaml() string {
	text := fmt.Sprintf("policies: [{id: p, scope: tenant, algorithm: %s, amount: %d, window: %dns", s.algorithm, s.amount, s.width)
	if s.algorithm == "token_bucket" || s.algorithm == "leaky_bucket" {
		text += fmt.Sprintf(", burst: %d", s.burst)
	}
	return text + "}]"
}

// randomCost is 0 … capacity + 1, often one of the edges.
func (s spec) randomCost(r *rand.Rand, room int64) int64 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return s.capacity() + 1
	case 2:
		return s.capacity()
	case 3:
		return min(room+1, s.capacity()+1)
	case 4:
		return max(room, 0)
	case 5:
		return between(r, 1, s.capacity()+1)
	default:
		return 1
	}
}

// randomPause is the time until the next request: none, exactly until the last
// one denied would pass or one ns before, or some part of a window.
func (s spec) randomPause(r *rand.Rand, last verdict) int64 {
	switch r.IntN(8) {
	case 0, 1:
		return 0
	case 2, 3:
		return max(last.retry, 0)
	case 4:
		return max(last.retry-1, 0)
	case 5:
		return last.reset
	case 6:
		return r.Int64N(s.width/s.amount + 2)
	default:
		return r.Int64N(s.width * 5 / 4)
	}
}

// TestAgreesWithRationalArithmetic plays random traces of a few tenants and
// compares every field of every line.
func TestAgreesWithRationalArithmetic(t *testing.T) {
	for _, algorithm := range []string{"token_bucket", "leaky_bucket", "fixed_window", "sliding_window", "sliding_log", "concurrency"} {
		t.Run(algorithm, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(120) {
				r := rand.New(rand.NewPCG(seed, uint64(len(algorithm))))
				s := randomSpec(r, algorithm)
				trace, want := randomTrace(r, s)
				got := play(t, parse(t, s.yaml()), trace, nil)
				if got == want {
					continue
				}
				lines, right := strings.Split(got, "\n"), strings.Split(want, "\n")
				for i, line := range strings.Split(trace, "\n") {
					if lines[i] != right[i] {
						t.Fatalf("seed %d, %s\nline %d: %s\ngot  %s\nwant %s", seed, s.yaml(), i+1, line, lines[i], right[i])
					}
				}
			}
		})
	}
}

// randomTrace is a trace and what simulate has to say to it.
func randomTrace(r *rand.Rand, s spec) (trace, want string) {
	var in, out strings.Builder
	tenants := []*oracle{newOracle(s), newOracle(s), newOracle(s)}
	var last verdict
	now := r.Int64N(3 * s.width)
	for range 80 {
		now += s.randomPause(r, last)
		who := min(r.IntN(5), 2) // mostly one
		o := tenants[who]
		o.flow(now)
		cost := s.randomCost(r, o.room(now))
		last = o.ask(now, cost)
		at := fmt.Sprintf("%d.%09d", now/1e9, now%1e9)
		fmt.Fprintf(&in, `{"t":"%s","cost":%d,"request":{"tenant":"t%d"}}`+"\n", at, cost, who)
		fmt.Fprintf(&out, `{"t":"%s","allowed":%v,"policy_id":"p","remaining":%d,"retry_after_ns":%d,"reset_after_ns":%d,"delay_ns":%d,"reason":"%s"}`+"\n",
			at, last.allowed, last.remaining, last.retry, last.reset, last.delay, last.reason)
	}
	return in.String(), out.String()
}

// TestLongLogsNeverAdmitMore plays logs of several thousand entries: whatever is
// admitted an exact log admits too, and what is denied an exact log would deny
// that keeps its entries for a thousandth of the window longer.
func TestLongLogsNeverAdmitMore(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := spec{algorithm: "sliding_log", amount: between(r, 2000, 1_000_000), width: between(r, int64(time.Millisecond), month)}
		var trace strings.Builder
		now := int64(0)
		for range 10_000 {
			now += r.Int64N(s.width/2000 + 1) // some 4,000 in a window, for a third more than the amount
			cost := 1 + r.Int64N(s.amount/1500)
			fmt.Fprintf(&trace, `{"t":"%d.%09d","cost":%d,"request":{"tenant":"acme"}}`+"\n", now/1e9, now%1e9, cost)
		}
		checkLongLog(t, s, trace.String())
	}
}

func checkLongLog(t *testing.T, s spec, trace string) {
	t.Helper()
	var kept []charge // admitted
	var exact, late struct {
		sum  int64
		from int // in kept
	}
	denied := 0
	play(t, parse(t, s.yaml()), trace, func(e *simulate.Event, o *simulate.Outcome) {
		for exact.from < len(kept) && e.Time-kept[exact.from].at >= s.width {
			exact.sum -= kept[exact.from].cost
			exact.from++
		}
		for late.from < len(kept) && 1000*(e.Time-kept[late.from].at) >= 1001*s.width {
			late.sum -= kept[late.from].cost
			late.from++
		}
		cost := int64(e.Request.Cost)
		switch {
		case o.Allowed && exact.sum+cost > s.amount:
			t.Fatalf("%s: at %s %d admitted beside %d", s.yaml(), e.T, cost, exact.sum)
		case o.Allowed:
			kept = append(kept, charge{e.Time, cost})
			exact.sum += cost
			late.sum += cost
		default:
			denied++
			if late.sum+cost <= s.amount {
				t.Fatalf("%s: at %s %d denied beside %d", s.yaml(), e.T, cost, late.sum)
			}
		}
	})
	t.Logf("%s: %d admitted, %d denied", s.yaml(), len(kept), denied)
}

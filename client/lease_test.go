package client

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

func TestHotKeyIsSpentFromLeases(t *testing.T) {
	leaseBubble(t, tokens(1e6, 1e6, time.Hour), one, 1, func(t *testing.T, _ *fakeCluster, b *leasedBucket, c []*Client) {
		leased := callOften(t, c[0], 2000, time.Millisecond)
		asks, strict, _ := b.told()
		if strict > 60 || leased != 2000-strict || len(asks) > 30 || len(asks) < 15 {
			t.Errorf("%d from leases, %d leases asked for, %d strict", leased, len(asks), strict)
		}
		if units := asks[len(asks)-1].Lease.Units; units < 95 || units > 105 {
			t.Errorf("%d units asked for, want what 100 ms need", units)
		}
		if acked := asks[len(asks)-1].Lease.Acked; acked+3 < uint64(len(asks)) {
			t.Errorf("%d leases asked for, %d known to be over", len(asks), acked)
		}
		s := c[0].Stats()
		if s.Leased != uint64(leased) || s.Leases != uint64(len(asks)) || s.Requests < 2000 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnswerFromALease(t *testing.T) {
	leaseBubble(t, tokens(1000, 1000, time.Hour), one, 1, func(t *testing.T, _ *fakeCluster, b *leasedBucket, c []*Client) {
		callOften(t, c[0], 300, time.Millisecond)
		before, err := c[0].Decide(t.Context(), acme)
		if err != nil || !before.Leased || before.Limit != 1000 || before.PolicyID != "p" || before.PolicyVersion != 1 || before.Degraded {
			t.Fatalf("%+v, %v", before, err)
		}
		if used := 1000 - before.Remaining; used < 299 || used > 302 {
			t.Errorf("%d of 1000 used after 301 calls", used)
		}
		many := acme
		many.Cost = 5
		after, err := c[0].Decide(t.Context(), many)
		if err != nil || !after.Leased || after.Remaining != before.Remaining-5 {
			t.Errorf("%+v after %+v, %v", after, before, err)
		}
	})
}

// TestQuietKeysAreNotLeased: where a lease would spare little, there is none to return.
func TestQuietKeysAreNotLeased(t *testing.T) {
	leaseBubble(t, tokens(1000, 1000, time.Hour), one, 1, func(t *testing.T, _ *fakeCluster, b *leasedBucket, c []*Client) {
		if leased := callOften(t, c[0], 100, 50*time.Millisecond); leased != 0 {
			t.Errorf("%d from leases", leased)
		}
		if asks, strict, _ := b.told(); len(asks) != 0 || strict != 100 {
			t.Errorf("%d leases asked for, %d strict", len(asks), strict)
		}
		time.Sleep(2 * holdingIdle)
		if n := c[0].leases.held.Load(); n != 0 {
			t.Errorf("%d keys are held", n)
		}
	})
}

func TestSomeRequestsAreTheClustersAlone(t *testing.T) {
	leaseBubble(t, tokens(1e6, 1e6, time.Hour), one, 1, func(t *testing.T, _ *fakeCluster, b *leasedBucket, c []*Client) {
		callOften(t, c[0], 300, time.Millisecond)
		for name, r := range map[string]Request{
			"own id": {Tenant: "acme", RequestID: "i"}, "look": {Tenant: "acme", Look: true},
			"costs": {Tenant: "acme", Costs: map[string]int64{"p": 2}}, "witness": {Tenant: "acme", Witness: true},
			"another key": {Tenant: "acme", Plan: "x"},
		} {
			if d, _ := c[0].Decide(t.Context(), r); d.Leased {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if _, err := c[0].Decide(t.Context(), Request{Tenant: "acme", Cost: -1}); !errors.Is(err, fault.InvalidArgument) {
			t.Errorf("%v", err)
		}
	})
}

func TestBatchesAreSpentFromLeases(t *testing.T) {
	leaseBubble(t, tokens(1e6, 1e6, time.Hour), one, 1, func(t *testing.T, _ *fakeCluster, b *leasedBucket, c []*Client) {
		requests := []Request{acme, {Tenant: "acme", RequestID: "own"}, acme, {Tenant: "acme", Cost: -1}}
		leased := 0
		for range 200 {
			results, err := c[0].DecideBatch(t.Context(), requests)
			if err != nil || !results[0].Allowed || !results[1].Allowed || results[1].Leased || !results[2].Allowed || !errors.Is(results[3].Err, fault.InvalidArgument) {
				t.Fatalf("%+v, %v", results, err)
			}
			if results[0].Leased && results[2].Leased {
				leased++
			}
			time.Sleep(time.Millisecond)
		}
		if leased < 150 {
			t.Errorf("%d of 200 batches", leased)
		}
		all, err := c[0].DecideBatch(t.Context(), []Request{acme, acme})
		if err != nil || !all[0].Leased || !all[1].Leased || all[1].Remaining != all[0].Remaining-1 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// TestLeaseIsVoidFromBeforeItWasAskedFor: its time counts from before the request was
// sent, not from when the answer came.
func TestLeaseIsVoidFromBeforeItWasAskedFor(t *testing.T) {
	leaseBubble(t, tokens(1e6, 1e6, time.Hour), one, 1, func(t *testing.T, f *fakeCluster, b *leasedBucket, c []*Client) {
		b.askDelay = 600 * time.Millisecond
		callOften(t, c[0], 200, time.Millisecond)
		asks, _, _ := b.told()
		if len(asks) != 1 {
			t.Fatalf("%d leases asked for", len(asks))
		}
		h := c[0].leases.find(acme.appendSubject(nil))
		for leased := 0; leased == 0; leased = callOften(t, c[0], 1, time.Millisecond) {
		}
		h.mu.Lock()
		g := h.grants[0]
		h.mu.Unlock()
		if came := c[0].now() - g.sent; came < int64(b.askDelay) || g.until != g.sent+int64(leaseTTL) {
			t.Fatalf("came after %v: %+v", time.Duration(came), g)
		}
		f.nodes["a"].answer(silent)
		for c[0].now() < g.until-int64(50*time.Millisecond) { // it is not returned meanwhile
			if d, err := c[0].Decide(t.Context(), acme); err != nil || !d.Leased {
				t.Fatalf("%+v, %v, %v before its end", d, err, time.Duration(g.until-c[0].now()))
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(time.Duration(g.until - c[0].now()))
		if d, err := c[0].Decide(t.Context(), acme); err == nil {
			t.Errorf("at its end: %+v", d)
		}
		if s := c[0].Stats(); s.UnitsExpired == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestCloseReturnsWhatIsLeft(t *testing.T) {
	leaseBubble(t, tokens(1e6, 1e6, 1000*time.Hour), one, 1, func(t *testing.T, _ *fakeCluster, b *leasedBucket, c []*Client) {
		callOften(t, c[0], 330, time.Millisecond)
		if b.remaining() > 1e6-340 {
			t.Fatalf("%d left: nothing is held", b.remaining())
		}
		c[0].Close()
		_, _, returned := b.told()
		if used := 1e6 - b.remaining(); len(returned) == 0 || used < 329 || used > 333 { // each return leaves one for what came in
			t.Errorf("%d used after 330 calls, %d returns", used, len(returned))
		}
		s := c[0].Stats()
		if spent := s.UnitsGranted - s.UnitsReturned - s.UnitsExpired; spent != s.Leased || s.UnitsExpired != 0 {
			t.Errorf("%+v", s)
		}
		if _, err := c[0].Decide(t.Context(), acme); !errors.Is(err, fault.Unavailable) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestIdleLeaseIsReturned(t *testing.T) {
	leaseBubble(t, tokens(1e6, 1e6, 1000*time.Hour), one, 1, func(t *testing.T, _ *fakeCluster, b *leasedBucket, c []*Client) {
		callOften(t, c[0], 330, time.Millisecond)
		time.Sleep(leaseIdle + 2*keepEvery)
		if used := 1e6 - b.remaining(); used < 329 || used > 333 {
			t.Errorf("%d used after 330 calls", used)
		}
		if leased := callOften(t, c[0], 200, time.Millisecond); leased < 100 {
			t.Errorf("%d from leases after the pause", leased)
		}
	})
}

// TestLeaseIsSpentWhileNobodyAnswers: until it is void.
func TestLeaseIsSpentWhileNobodyAnswers(t *testing.T) {
	leaseBubble(t, tokens(1e6, 1e6, time.Hour), one, 1, func(t *testing.T, f *fakeCluster, _ *leasedBucket, c []*Client) {
		callOften(t, c[0], 330, time.Millisecond)
		f.nodes["a"].kill()
		leased := 0
		for {
			d, err := c[0].Decide(t.Context(), acme)
			if err != nil {
				break
			}
			if !d.Leased || !d.Allowed {
				t.Fatalf("%+v", d)
			}
			leased++
		}
		if leased < 40 || leased > 220 {
			t.Errorf("%d calls", leased)
		}
	})
}

// TestLeaseAskGoesToTheNextLeader: under the same id, so that it is granted once.
func TestLeaseAskGoesToTheNextLeader(t *testing.T) {
	leaseBubble(t, tokens(1e6, 1e6, 1000*time.Hour), three, 1, func(t *testing.T, f *fakeCluster, b *leasedBucket, c []*Client) {
		lost := 0
		b.refuse = func(r *pb.DecideRequest) error {
			if r.Lease != nil && lost < 2 { // granted, and the answer lost
				lost++
				b.decide(r, &pb.StreamRequest{})
				return fault.New(fault.OutcomeUnknown, "leadership lost")
			}
			return nil
		}
		callOften(t, c[0], 400, time.Millisecond)
		asks, _, _ := b.told()
		if lost != 2 || len(asks) == 0 || asks[0].Sent.Sequence != 1 || asks[0].Sent.Attempt < 3 || asks[0].Sent.Session == c[0].session {
			t.Fatalf("%d lost, then %v", lost, asks)
		}
		c[0].Close()
		if used := 1e6 - b.remaining(); used < 399 || used > 404 {
			t.Errorf("%d used after 400 calls", used)
		}
	})
}

// TestKeyThatIsNoLongerLeased: the cluster decides it again, and nobody asks on.
func TestKeyThatIsNoLongerLeased(t *testing.T) {
	leaseBubble(t, tokens(1e6, 1e6, time.Hour), one, 1, func(t *testing.T, f *fakeCluster, b *leasedBucket, c []*Client) {
		callOften(t, c[0], 200, time.Millisecond)
		var refused int
		b.mu.Lock()
		b.refuse = func(r *pb.DecideRequest) error {
			if r.Lease != nil {
				refused++
				return fault.New(fault.NotLeased, "policy p is strict")
			}
			return nil
		}
		b.mu.Unlock()
		f.nodes["a"].answer(b.answer)
		callOften(t, c[0], 1000, time.Millisecond)
		if refused != 1 {
			t.Errorf("%d leases asked for", refused)
		}
	})
}

// TestLeasedStaysWithinTheBound: many clients on one key, more than it has, some of which
// die with tokens in hand, or are closed and begin anew.
func TestLeasedStaysWithinTheBound(t *testing.T) {
	const seconds = 3
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		limit := tokens([]uint64{3000, 50, 400}[seed%3], []uint64{20, 300}[seed%2], time.Second)
		leaseBubble(t, limit, one, 8, func(t *testing.T, f *fakeCluster, b *leasedBucket, clients []*Client) {
			b.share = uint64(random.IntN(8) + 1)
			b.askDelay = time.Duration(random.IntN(20)) * time.Millisecond
			a := admissions{start: time.Now()}
			var work sync.WaitGroup
			var leased atomic.Uint64
			for i := range clients {
				pause := time.Duration(1+random.IntN(10)) * time.Millisecond
				ends := time.Duration(500+random.IntN(2000)) * time.Millisecond
				dies := random.IntN(2) == 0
				cost := int64(1 + random.IntN(2))
				work.Go(func() {
					c := clients[i]
					for time.Since(a.start) < seconds*time.Second {
						if time.Since(a.start) > ends && ends > 0 {
							leased.Add(c.Stats().Leased)
							if ends = 0; dies {
								c.cancel() // what it holds is lost
							}
							c.Close()
							c = f.client()
							clients[i] = c
						}
						if d, err := c.Decide(t.Context(), Request{Tenant: "acme", Cost: cost}); err == nil && d.Allowed {
							a.add(cost)
						}
						time.Sleep(pause)
					}
				})
			}
			work.Wait()
			total := a.check(t, limit)
			least := int64(limit.Burst) + seconds*int64(limit.Amount)*6/10
			for _, c := range clients {
				leased.Add(c.Stats().Leased)
			}
			if demand := int64(8 * seconds * 1000 / 10); total < min(least, demand) || limit.Amount >= 3000 && leased.Load() == 0 { // where tokens are scarce, single calls win the race for them
				t.Errorf("seed %d: %d admitted, want at least %d; %d from leases", seed, total, least, leased.Load())
			}
		})
	}
}

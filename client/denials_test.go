package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
)

// policyOf is a file with the policy p of a limit, and more words about it.
func policyOf(l bucket.Limit, more string) string {
	if l.Algorithm.HasBurst() {
		more += fmt.Sprintf(", burst: %d", l.Burst)
	}
	return fmt.Sprintf("policies: [{id: p, scope: [tenant], algorithm: %s, amount: %d, window: %dms%s, on_unavailable: {mode: closed, after: deadline}}]",
		l.Algorithm, l.Amount, time.Duration(l.Window).Milliseconds(), more)
}

// hammering runs a test against a node that leads one bucket, with a client that knows its policy.
func hammering(t *testing.T, limit bucket.Limit, more string, test func(t *testing.T, f *fakeCluster, c *Client, b *oneBucket), opts ...Option) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "a")
		f.tell(policyOf(limit, more))
		m := new(counting)
		c := f.client(append(opts, WithMeterProvider(m))...)
		time.Sleep(11 * time.Second)
		b := newBucket(t, limit)
		f.nodes["a"].answer(b.answer)
		test(t, f, c, b)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if got := max(0, m.of("ringlimit.client.remembered")); got != int64(c.Stats().Remembered) {
			t.Errorf("the metric says %d, the count %d", got, c.Stats().Remembered)
		}
		f.stop()
	})
}

func mustDecide(t *testing.T, c *Client, r Request) Decision {
	t.Helper()
	d, err := c.Decide(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// hammer asks n times, every step, and returns how many answers were remembered.
func hammer(t *testing.T, c *Client, r Request, n int, step time.Duration) (remembered int) {
	t.Helper()
	for range n {
		if mustDecide(t, c, r).Remembered {
			remembered++
		}
		time.Sleep(step)
	}
	return remembered
}

// TestHammeredDenialIsAnsweredHere: the third denial in a row is remembered, for as long as
// the option says, and every answer tells the same moment.
func TestHammeredDenialIsAnsweredHere(t *testing.T) {
	limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: 2, Window: int64(10 * time.Second)}
	hammering(t, limit, "", func(t *testing.T, _ *fakeCluster, c *Client, b *oneBucket) {
		first := spend(t, c)
		due := time.Now().Add(first.RetryAfter)
		before, _ := b.seen()
		for i := range 1000 { // over one second
			d := mustDecide(t, c, acme)
			if d.Allowed || time.Now().Add(d.RetryAfter) != due || d.Reason != "rate_limited" || d.PolicyID != "p" || d.Limit != 2 {
				t.Fatalf("%d: %+v", i, d)
			}
			if i < 2 && d.Remembered {
				t.Errorf("%d: remembered", i)
			}
			time.Sleep(time.Millisecond)
		}
		asked, _ := b.seen()
		if n := len(asked) - len(before); n != 2+9 { // then every 100 ms
			t.Errorf("the cluster was asked %d times", n)
		}
		if n := c.Stats().Remembered; n != 1000-11 {
			t.Errorf("%d were remembered", n)
		}
		time.Sleep(time.Until(due))
		if d := mustDecide(t, c, acme); !d.Allowed {
			t.Errorf("at its time: %+v", d)
		}
	})
}

// TestRetryAtItsTimeIsAdmitted: whoever comes back alone exactly when any of the answers told,
// remembered or not, is decided by the cluster, and admitted.
func TestRetryAtItsTimeIsAdmitted(t *testing.T) {
	for _, limit := range limits {
		remembered := 0
		for seed := range uint64(4) {
			hammering(t, limit, "", func(t *testing.T, _ *fakeCluster, c *Client, b *oneBucket) {
				r := rand.New(rand.NewPCG(seed, 1))
				q := acme
				if limit.Algorithm != bucket.Concurrency {
					q.Cost = r.Int64N(3) + 1
				}
				for range 10 {
					d := mustDecide(t, c, q)
					for n := r.IntN(60); n > 0 || d.Allowed; n-- {
						time.Sleep(time.Duration(r.Int64N(int64(3 * time.Millisecond))))
						d = mustDecide(t, c, q)
					}
					if d.Remembered {
						remembered++
					}
					before, _ := b.seen()
					time.Sleep(d.RetryAfter)
					again := mustDecide(t, c, q)
					if asked, _ := b.seen(); !again.Allowed || len(asked) != len(before)+1 {
						t.Fatalf("%s, seed %d: after %v: %+v", limit.Algorithm, seed, d.RetryAfter, again)
					}
				}
			}, RememberDenials(time.Duration(seed%4)*250*time.Millisecond))
		}
		if got := remembered > 0; got != (limit.Algorithm != bucket.Concurrency) {
			t.Errorf("%s: %d of the answers were remembered", limit.Algorithm, remembered)
		}
	}
}

// TestWhatIsNotRemembered: denials that something but time may end, and those of others.
func TestWhatIsNotRemembered(t *testing.T) {
	token := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: 1, Window: int64(10 * time.Second)}
	ms := time.Millisecond
	for _, x := range []struct {
		name  string
		limit bucket.Limit
		more  string
		step  time.Duration
		r     func(i int) Request
		opts  []Option
		want  bool
	}{
		{"the same", token, "", ms, func(int) Request { return acme }, nil, true},
		{"a policy in shadow mode", token, ", mode: shadow", ms, func(int) Request { return acme }, nil, false},
		{"a leased policy", token, ", consistency: leased", ms, func(int) Request { return acme }, nil, false},
		{"concurrency", bucket.Limit{Algorithm: bucket.Concurrency, Amount: 1, Window: token.Window}, "", ms, func(int) Request { return acme }, nil, false},
		{"an option", token, "", ms, func(int) Request { return acme }, []Option{RememberDenials(0)}, false},
		{"a client that never degrades", token, "", ms, func(int) Request { return acme }, []Option{NeverDegrade()}, false},
		{"ids of its own", token, "", ms, func(int) Request { return Request{Tenant: "acme", RequestID: "own"} }, nil, false},
		{"looks", token, "", ms, func(int) Request { return Request{Tenant: "acme", Look: true} }, nil, false},
		{"witnesses", token, "", ms, func(int) Request { return Request{Tenant: "acme", Witness: true} }, nil, false},
		{"other attributes", token, "", ms, func(i int) Request { return Request{Tenant: "acme", Route: fmt.Sprint("GET:/", i)} }, nil, false},
		{"other costs", token, "", ms, func(i int) Request {
			return Request{Tenant: "acme", Costs: map[string]int64{"p": 1, "q": int64(i)}}
		}, nil, false},
		{"a long one", token, "", ms, func(int) Request {
			return Request{Tenant: "acme", Attributes: map[string]string{"a": strings.Repeat("x", 512)}}
		}, nil, false},
		{"at its time", bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: 1, Window: int64(time.Second)}, "", time.Second, func(int) Request { return acme }, nil, false},
	} {
		hammering(t, x.limit, x.more, func(t *testing.T, _ *fakeCluster, c *Client, _ *oneBucket) {
			for i := range 20 {
				if d := mustDecide(t, c, x.r(i)); d.Remembered && !x.want {
					t.Errorf("%s: %+v", x.name, d)
				}
				time.Sleep(x.step)
			}
			if got := c.Stats().Remembered > 0; got != x.want {
				t.Errorf("%s: %d remembered", x.name, c.Stats().Remembered)
			}
		}, x.opts...)
	}
}

// TestMemoryOfDenialsEndsEarly: when this client gives something back; and another cost never
// gets the answer.
func TestMemoryOfDenialsEndsEarly(t *testing.T) {
	limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: 3, Window: int64(10 * time.Second)}
	hammering(t, limit, "", func(t *testing.T, f *fakeCluster, c *Client, b *oneBucket) {
		big := acme
		big.Cost = 3
		mustDecide(t, c, acme)
		if hammer(t, c, big, 10, time.Millisecond) == 0 {
			t.Fatal("nothing is remembered")
		}
		if d := mustDecide(t, c, acme); !d.Allowed || d.Remembered {
			t.Errorf("of another cost: %+v", d)
		}
		if _, _, err := c.Refund(t.Context(), paid, 0); err != nil {
			t.Fatal(err)
		}
		if d := mustDecide(t, c, big); d.Remembered {
			t.Errorf("after a refund: %+v", d)
		}
		_, passed := b.seen()
		if len(passed) != 2 {
			t.Errorf("%d admitted", len(passed))
		}
	}, RememberDenials(time.Second))
}

// TestOtherPoliciesEndTheMemory at once. The client here learns them from the test alone.
func TestOtherPoliciesEndTheMemory(t *testing.T) {
	limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: 1, Window: int64(10 * time.Second)}
	hammering(t, limit, "", func(t *testing.T, f *fakeCluster, c *Client, _ *oneBucket) {
		for n := range 2 {
			if err := c.keep(kept{policies: f.policies, share: c.kept.share}); err != nil {
				t.Fatal(err)
			}
			if d := mustDecide(t, c, acme); d.Remembered {
				t.Errorf("after %d changes: %+v", n, d)
			}
			if hammer(t, c, acme, 10, time.Millisecond) == 0 {
				t.Fatal("nothing is remembered")
			}
		}
	}, RememberDenials(time.Second), NeverDegrade())
}

// TestBatchesRemember as single calls do, each request by itself.
func TestBatchesRemember(t *testing.T) {
	limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: 1, Window: int64(10 * time.Second)}
	hammering(t, limit, "", func(t *testing.T, _ *fakeCluster, c *Client, _ *oneBucket) {
		spend(t, c)
		hammer(t, c, acme, 5, time.Millisecond)
		other := Request{Tenant: "acme", Plan: "gold"}
		for range 3 {
			results, err := c.DecideBatch(t.Context(), []Request{acme, other, acme, {Cost: -1}})
			if err != nil {
				t.Fatal(err)
			}
			if !results[0].Remembered || !results[2].Remembered || results[1].Remembered || results[3].Err == nil || results[0].RetryAfter <= 0 {
				t.Errorf("%+v", results)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}, RememberDenials(time.Second))
}

// TestLongestSafeDenialCounts: of several denials one that only time ends is enough, and its
// time is what counts.
func TestLongestSafeDenialCounts(t *testing.T) {
	limit := bucket.Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: 1, Window: int64(10 * time.Second)}
	hammering(t, limit, "", func(t *testing.T, f *fakeCluster, c *Client, _ *oneBucket) {
		var asked atomic.Int64
		f.nodes["a"].answer(func(_ context.Context, m *pb.StreamRequest) []*pb.Result {
			return each(m, func(*pb.DecideRequest) *pb.Result {
				asked.Add(1)
				d := &pb.Decision{PolicyId: "permits", PolicyVersion: 1, Reason: "rate_limited", RetryAfterNs: int64(time.Minute)}
				d.Limits = []*pb.LimitDecision{
					{PolicyId: "p", PolicyVersion: 1, Reason: "rate_limited", RetryAfterNs: int64(50 * time.Millisecond)},
					{PolicyId: "permits", PolicyVersion: 1, Reason: "rate_limited", RetryAfterNs: int64(time.Minute)},
				}
				return &pb.Result{Decision: d}
			})
		})
		hammer(t, c, acme, 300, time.Millisecond)
		if n := asked.Load(); n != 2+6 { // 2, then every 50 ms
			t.Errorf("asked %d times", n)
		}
		if d := mustDecide(t, c, acme); d.Remembered && (len(d.Limits) != 2 || d.Limits[0].RetryAfter <= 0 || d.Limits[1].RetryAfter >= time.Minute) {
			t.Errorf("%+v", d)
		}
	}, RememberDenials(time.Second))
}

// TestMemoryOfDenialsIsBounded: whatever is asked.
func TestMemoryOfDenialsIsBounded(t *testing.T) {
	m := newDenials(time.Second)
	for i := range int64(20_000) {
		body := fmt.Append(nil, i)
		for n := range int64(hammered) {
			if m.hear(body, time.Hour, i+n, i+n) != (n == hammered-1) {
				t.Fatalf("denial %d of %d", n, i)
			}
		}
		m.remember(body, Decision{Answer: Answer{RetryAfter: time.Hour}}, i+hammered, i+1000)
		if d, ok := m.recall(body, i+hammered); !ok || d.RetryAfter != time.Hour {
			t.Fatalf("%d is not remembered", i)
		}
	}
	places := 0
	for i := range m.shards {
		places += len(m.shards[i].places)
	}
	if places != denialShards*denialPlaces {
		t.Errorf("%d places", places)
	}
	m.forget()
	if _, ok := m.recall(fmt.Append(nil, 19_999), 20_000); ok {
		t.Error("remembered what was forgotten")
	}
}

func TestMemoryOfDenialsHasARange(t *testing.T) {
	for _, d := range []time.Duration{-1, time.Second + 1} {
		if _, err := New([]string{"127.0.0.1:1"}, RememberDenials(d)); err == nil {
			t.Errorf("%v is taken", d)
		} else if !strings.Contains(err.Error(), fault.InvalidArgument.Error()) {
			t.Error(err)
		}
	}
}

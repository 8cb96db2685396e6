package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

const (
	pacedCallers = 256
	hastyCallers = 32 // that do not pause, to find the capacity for callers that are not gathered much
	largeShare   = 10 // one of so many requests is for the tenant with the large slot
	fillBatch    = 250
	fillers      = 4
	filledTries  = 40 // looks, 50 ms apart, for the last bucket to arrive on a node
)

// record is one take as its caller saw it. Times are since the load began.
type record struct {
	slot          uint16
	group         uint32
	slotTime      time.Duration // at which it was decided
	due, call, at time.Duration // it should have been sent, was sent, was answered
}

// traffic is callers that ask at a fixed rate in all, each by its own timetable. A
// caller that is late asks at once, and its latency counts from when it was due.
type traffic struct {
	b     *bench
	begun time.Time
	large uint16 // the slot of oneTenant
	end   context.CancelFunc
	wg    sync.WaitGroup // the callers

	mu      sync.Mutex // guards what follows
	records []record
	errors  int
	first   error
}

func (t *traffic) now() time.Duration { return time.Since(t.begun) }

// startTraffic begins the load.
func (b *bench) startTraffic(ctx context.Context, rate float64) (*traffic, error) {
	slot, err := b.hash(ctx)
	if err != nil {
		return nil, err
	}
	c, err := client.New(b.fleet.GRPC(), client.NeverDegrade())
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(ctx)
	t := &traffic{b: b, begun: time.Now(), large: slot(oneTenant), end: end}
	b.say("  load: %.0f/s by %d callers, one in %d for keys of the large slot %d", rate, pacedCallers, largeShare, t.large)
	gap := time.Duration(pacedCallers / rate * float64(time.Second))
	for range pacedCallers {
		t.wg.Go(func() { t.caller(ctx, c, slot, gap) })
	}
	go func() {
		t.wg.Wait()
		_ = c.Close()
	}()
	return t, nil
}

// caller takes until ctx ends, once each gap.
func (t *traffic) caller(ctx context.Context, c *client.Client, slot func(string) uint16, gap time.Duration) {
	var records []record
	for due := rand.N(gap); ; due += gap {
		if pause(ctx, due-t.now()) != nil {
			break
		}
		q := client.Request{Tenant: manyTenants + strconv.Itoa(rand.IntN(t.b.keys))}
		if rand.IntN(largeShare) == 0 {
			q = keyOf(rand.IntN(t.b.large))
		}
		r := record{slot: slot(q.Tenant), due: due, call: t.now()}
		d, err := c.Decide(context.WithoutCancel(ctx), q)
		r.at = t.now()
		if err == nil && !d.Allowed {
			err = fmt.Errorf("denied: %+v", d.Answer)
		}
		if err != nil {
			t.fail(err)
			continue
		}
		r.group, r.slotTime = d.Group, d.SlotTime
		records = append(records, r)
	}
	t.mu.Lock()
	t.records = append(t.records, records...)
	t.mu.Unlock()
}

func (t *traffic) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.errors++; t.first == nil {
		t.first = err
	}
}

// stop ends the load, and returns what the callers saw.
func (t *traffic) stop() []record {
	t.end()
	t.wg.Wait()
	return t.records
}

// failed says that requests failed, if any did.
func (t *traffic) failed() error {
	if t.errors == 0 {
		return nil
	}
	return fmt.Errorf("%d requests failed at the client's deadline of 2 s, the first with: %w", t.errors, t.first)
}

// keyOf is a request for a key of the large slot.
func keyOf(i int) client.Request {
	return client.Request{Tenant: oneTenant, Plan: "keys", Principals: []client.Principal{{Type: "api_key", ID: "key-" + strconv.Itoa(i)}}}
}

// fill takes once from each bucket.
func (b *bench) fill(ctx context.Context) error {
	if err := b.load(ctx, manyTenants, b.keys); err != nil {
		return err
	}
	begun := time.Now()
	errs := make(chan error, fillers)
	var wg sync.WaitGroup
	for f := range fillers {
		wg.Go(func() { errs <- b.fillLarge(ctx, f) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	b.say("  %d keys of one tenant in one slot, in %.1f s", b.large, time.Since(begun).Seconds())
	return nil
}

// filled wants every bucket on each of the three nodes: one that is full again has
// been dropped, and what moves would then be less than this says. A follower hears
// of the last commit by the next ping.
func (b *bench) filled(ctx context.Context) error {
	want := float64(b.keys + b.large)
	for _, n := range b.fleet.Nodes {
		held := 0.0
		for try := 0; held < want; try++ {
			var err error
			if held, err = gauge(ctx, n, "ringlimit_group_buckets"); err != nil {
				return err
			}
			if held < want && try == filledTries {
				return fmt.Errorf("node %s holds %.0f buckets, want %.0f", n.Name, held, want)
			}
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// fillLarge is one of those that fill the large slot, each by a session of its own:
// a slot keeps only so many results of one.
func (b *bench) fillLarge(ctx context.Context, f int) error {
	c, err := client.New(b.fleet.GRPC(), client.NeverDegrade(), client.WithDefaultTimeout(10*time.Second))
	if err != nil {
		return err
	}
	defer c.Close()
	for i := f * fillBatch; i < b.large; i += fillers * fillBatch {
		var batch []client.Request
		for k := i; k < min(i+fillBatch, b.large); k++ {
			batch = append(batch, keyOf(k))
		}
		results, err := c.DecideBatch(ctx, batch)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Err != nil {
				return r.Err
			}
		}
	}
	return nil
}

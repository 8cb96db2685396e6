package check

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/decision"
)

// world is a cluster in miniature: one table that obeys one entry after the other,
// callers that see what comes back, or do not, and a clock that both go by. What is
// wrong with it is what a test makes wrong.
type world struct {
	tb    testing.TB
	rng   *rand.Rand
	table *bucket.Table
	build bucket.Builder

	now          time.Duration // of the checker
	skew         time.Duration // slot time − now
	rate         float64       // of the slot's clock
	applied      uint64        // entries of the table
	group, epoch uint32
	term, index  uint64

	limits   map[string]Limit
	versions map[string]uint64
	setup    Setup
	ops      []Op
	requests uint64
	asked    int    // numbers of drawUnit
	births   uint64 // revisions

	lossy   float64 // part of answers that are lost, and of requests
	copies  float64 // part of requests that are sent twice
	peeking bool
	twice   bool // every charge is made twice: a broken cluster
	entries [][]byte
	late    []ask // lost on their way in, and perhaps still coming
	held    []Op  // grants not yet released
}

func newWorld(tb testing.TB, seed uint64) *world {
	w := &world{
		tb: tb, rng: rand.New(rand.NewPCG(seed, 1)), table: bucket.NewTable(1), rate: 1, now: time.Second, skew: time.Minute,
		group: 1, epoch: 1, term: 1, limits: map[string]Limit{}, versions: map[string]uint64{},
	}
	w.setup.Limits = w.limits
	w.obey(bucket.HoldEntry(0, []uint16{0}), nil)
	return w
}

// ask is one request under way.
type ask struct {
	kind    Kind
	buckets []string
	cost    uint64
	id      string
	permit  *Op
	call    time.Duration
	client  int
}

func (w *world) slotTime() int64 { return int64(w.rate*float64(w.now)) + int64(w.skew) }

func (w *world) obey(entry []byte, out *bucket.Results) {
	w.applied++
	w.index++
	w.entries = append(w.entries, slices.Clone(entry))
	if err := w.table.Apply(w.applied, entry, out); err != nil {
		w.tb.Fatal(err)
	}
}

// renew begins with an empty table, as if all had been forgotten.
func (w *world) renew() {
	w.table, w.entries, w.applied = bucket.NewTable(1), nil, 0
	w.obey(bucket.HoldEntry(w.slotTime(), []uint16{0}), nil)
}

// lose takes the last n entries back, as if a new leader had not had them.
func (w *world) lose(n int) {
	kept := w.entries[:len(w.entries)-n]
	w.table, w.entries, w.applied = bucket.NewTable(1), nil, 0
	index := w.index
	for _, e := range kept {
		w.obey(e, nil)
	}
	w.index = index
	w.term++
}

func hash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

func (w *world) take(name string, cost uint64) bucket.Take {
	return bucket.Take{
		Key: bucket.Key{Hi: hash(name), Lo: hash("low" + name)}, Cost: cost,
		Rule: bucket.Rule{Policy: hash("policy" + name), Version: w.versions[name], Limit: w.limits[name], Loss: w.setup.OnLoss[name]},
	}
}

// limit makes a bucket, or changes its limit.
func (w *world) limit(name string, l Limit) {
	if w.versions[name]++; w.versions[name] == 1 {
		w.limits[name] = l
		return
	}
	if w.setup.Limits[name] == w.limits[name] && w.setup.Changed[name] == nil {
		if w.setup.Changed == nil {
			w.setup.Changed = map[string]map[uint64]Limit{}
		}
		w.setup.Changed[name] = map[uint64]Limit{w.versions[name] - 1: w.limits[name]}
	}
	w.limits[name] = l
	w.setup.Changed[name][w.versions[name]] = l
}

func (w *world) request(a *ask) bucket.Request {
	r := bucket.Request{}
	if a.id != "" {
		r.ID = bucket.ID{Kind: bucket.OwnID, Own: bucket.Key{Hi: hash(a.id), Lo: 1}, Content: hash(fmt.Sprint(a.buckets, a.cost))}
	}
	switch a.kind {
	case Refund:
		r.Op = bucket.OpRefund
		return r
	case Renew, Release:
		r.Op = bucket.OpRelease
		if a.kind == Renew {
			r.Op = bucket.OpRenew
		}
		fmt.Sscan(a.permit.Permit, &r.Permit)
	}
	for _, b := range a.buckets {
		r.Takes = append(r.Takes, w.take(b, a.cost))
	}
	return r
}

// entry lets one entry decide asks at w.now. lost are those whose answer is lost.
func (w *world) entry(asks []ask, lost func(i int) bool) {
	w.build.Reset()
	var out bucket.Results
	for i := range asks {
		r := w.request(&asks[i])
		if !w.build.Add(&r) {
			w.tb.Fatal("does not fit")
		}
	}
	w.obey(w.build.Entry(w.slotTime()), &out)
	if w.twice {
		w.build.Reset()
		for i := range asks {
			a := asks[i]
			a.id = ""
			r := w.request(&a)
			w.build.Add(&r)
		}
		w.index--
		w.obey(w.build.Entry(w.slotTime()), nil)
	}
	for i := range asks {
		w.see(&asks[i], &out, i, Witness{
			Group: w.group, Epoch: w.epoch, Term: w.term, Index: w.index, Position: i + 1,
			SlotTime: time.Duration(out.Items[i].SlotTime), Repeated: out.Items[i].Code == bucket.Repeated,
		}, lost != nil && lost(i))
	}
}

// peek denies a at the applied state if it can.
func (w *world) peek(a *ask) bool {
	r := w.request(a)
	var out bucket.Results
	w.table.Peek(w.slotTime(), &r, &out)
	if out.Items[0].Code != bucket.Denied || a.kind != Take {
		return false
	}
	w.see(a, &out, 0, Witness{
		Group: w.group, Epoch: w.epoch, Term: w.term, Index: w.index, SlotTime: time.Duration(out.Items[0].SlotTime), Uncommitted: true,
	}, false)
	return true
}

// see is what the caller of a sees.
func (w *world) see(a *ask, out *bucket.Results, i int, at Witness, lost bool) {
	item := &out.Items[i]
	w.requests++
	o := Op{
		Client: a.client, Kind: a.kind, ID: a.id, Body: fmt.Sprint(a.buckets, a.cost), Cost: a.cost, Request: w.requests,
		Call: a.call, Return: w.now + w.between(10*time.Microsecond, 2*time.Millisecond), Witness: at,
	}
	if len(a.buckets) == 1 {
		o.Request = 0
	}
	if a.permit != nil {
		o.Permit = a.permit.Permit
	}
	switch {
	case lost:
		w.unknown(o, a.buckets)
		return
	case a.kind == Refund:
		o.Witness, o.Bucket, o.Cost, o.Outcome = Witness{}, a.buckets[0], 0, Denied
		if item.Code == bucket.Refunded {
			o.Outcome = Admitted
		}
		w.ops = append(w.ops, o)
		return
	}
	switch item.Code {
	case bucket.Admitted, bucket.Repeated, bucket.Refunded:
		o.Outcome = Admitted
	case bucket.Denied:
		o.Outcome = Denied
	case bucket.NoSuchPermit:
		o.Outcome, o.Bucket = Denied, a.buckets[0]
	case bucket.TooOld, bucket.StoreFull, bucket.PolicyStale, bucket.IDReused:
		o.Outcome, o.Bucket, o.Witness = Refused, a.buckets[0], Witness{}
		o.Code = map[bucket.Code]string{bucket.TooOld: "too_old", bucket.StoreFull: "store_full", bucket.PolicyStale: "unavailable", bucket.IDReused: "id_reused"}[item.Code]
	default:
		w.tb.Fatalf("code %v", item.Code)
	}
	if item.Count == 0 {
		w.ops = append(w.ops, o)
	}
	for k, x := range out.Answers[item.First : item.First+item.Count] {
		o.Bucket = a.buckets[k]
		o.Passed, o.Capacity, o.Remaining = x.Allowed, x.Capacity, x.Remaining
		o.ResetAfter, o.RetryAfter, o.Delay = time.Duration(x.ResetAfter), time.Duration(x.RetryAfter), time.Duration(x.Delay)
		o.Policy, o.Version, o.Token = "policy"+o.Bucket, x.Rule.Version, x.FencingToken
		o.Reason = decision.Reason(x.Reason)
		if x.PermitID != 0 {
			o.Permit = fmt.Sprint(x.PermitID)
		}
		w.ops = append(w.ops, o)
		if a.kind == Acquire && o.Permit != "" && !at.Repeated {
			w.held = append(w.held, o)
		}
	}
}

func (w *world) unknown(o Op, buckets []string) {
	o.Outcome, o.Return, o.Witness, o.Code = Unknown, Forever, Witness{}, "deadline"
	for _, b := range buckets {
		o.Bucket = b
		w.ops = append(w.ops, o)
	}
}

func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)))
}

func (w *world) chance(p float64) bool { return w.rng.Float64() < p }

// run asks n times, several in an entry, with lost and late requests, copies,
// retries and denials from the applied state.
func (w *world) run(n int, draw func() ask) {
	var retry []ask
	for asked := 0; asked < n; {
		var asks []ask
		for range 1 + w.rng.IntN(4) {
			a := draw()
			a.call, a.client = w.now-w.between(0, 3*time.Millisecond), w.rng.IntN(8)
			asked++
			switch {
			case w.chance(w.lossy / 2): // lost on its way in
				w.see(&a, &bucket.Results{Items: make([]bucket.Result, 1)}, 0, Witness{}, true)
				if w.chance(0.5) {
					w.late = append(w.late, a)
				}
				if a.id != "" && w.chance(0.7) {
					retry = append(retry, a)
				}
				continue
			case w.peeking && w.chance(0.3) && w.peek(&a):
				continue
			}
			if asks = append(asks, a); a.id != "" && w.chance(w.copies) {
				asks = append(asks, a)
			}
		}
		for i := 0; i < len(retry) && w.chance(0.3); i++ {
			retry[i].call = w.now - time.Microsecond
			asks = append(asks, retry[i])
			retry = retry[i+1:]
		}
		silent := len(asks)
		for len(w.late) > 0 && w.chance(0.3) { // they come after all, and nobody waits for their answer
			asks = append(asks, w.late[0])
			w.late = w.late[1:]
		}
		if len(asks) > 0 {
			before := len(w.ops)
			w.entry(asks, func(i int) bool { return i >= silent || w.chance(w.lossy/2) })
			w.forget(before, asks, silent)
			for _, o := range w.ops[before:] {
				if o.Outcome == Unknown && o.ID != "" && o.takes() && w.chance(0.5) {
					retry = append(retry, ask{kind: o.Kind, id: o.ID, cost: o.Cost, buckets: []string{o.Bucket}})
				}
			}
		}
		w.now += w.between(0, 5*time.Millisecond)
	}
}

// forget drops the operations of late requests, which their callers have noted as
// unknown before.
func (w *world) forget(from int, asks []ask, silent int) {
	n := len(w.ops)
	for i := silent; i < len(asks); i++ {
		n -= len(asks[i].buckets)
	}
	w.ops = w.ops[:max(n, from)]
}

// failover gives the log a new leader, at the cost of some of the time without one.
func (w *world) failover(lost time.Duration) {
	w.outage(w.between(0, 200*time.Millisecond), lost)
}

// outage is a new leader after some time, of which it has lost so much.
func (w *world) outage(took, lost time.Duration) {
	w.term++
	w.index += 1 + w.rng.Uint64N(3)
	from := w.now
	w.gap(took, lost)
	w.setup.Faults = append(w.setup.Faults, Fault{"failover", Span{from, w.now}})
}

// move lets the slot go on in another group.
func (w *world) move() {
	w.group++
	w.index = 10 + w.rng.Uint64N(1000)
	w.gap(w.between(0, 50*time.Millisecond), w.between(0, 2*time.Millisecond))
}

// gap is a time in which nothing is decided, of which the slot loses some.
func (w *world) gap(took, lost time.Duration) {
	w.now += took
	w.skew -= min(lost, took)
}

func frozenLimit(tokens uint64) Limit {
	return Limit{Algorithm: bucket.TokenBucket, Amount: 1, Burst: tokens, Window: int64(8760 * time.Hour)}
}

func tokenLimit(perSecond, burst uint64) Limit {
	return Limit{Algorithm: bucket.TokenBucket, Amount: perSecond, Burst: burst, Window: int64(time.Second)}
}

// found are the names of the checkers that found something.
func found(s *Setup, ops []Op) (names []string, all []Finding) {
	for _, v := range All(s, ops) {
		if len(v.Findings) > 0 {
			names = append(names, v.Checker)
			all = append(all, v.Findings...)
		}
	}
	return names, all
}

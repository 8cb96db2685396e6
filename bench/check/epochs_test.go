package check

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// epochRun is a right history with losses of the state, under every on_state_loss that
// needs no survivor, with moves, new leaders and deposed ones.
func epochRun(tb testing.TB, seed uint64) *world {
	w := newWorld(tb, seed)
	w.setup.OnLoss = map[string]bucket.Loss{}
	for i := range 4 {
		name := fmt.Sprint("b", i)
		if w.chance(0.3) {
			w.setup.OnLoss[name] = bucket.LossFull
		}
		if w.limit(name, w.anyLimit()); w.chance(0.3) {
			w.limits[name] = frozenLimit(1 + w.rng.Uint64N(60))
		}
	}
	w.peeking, w.setup.Still = w.chance(0.7), w.chance(0.5)
	if w.chance(0.5) {
		w.lossy, w.copies = 0.05, 0.2
	}
	for range 2 + w.rng.IntN(3) {
		w.run(40, w.drawUnit)
		if w.chance(0.5) {
			w.another(fmt.Sprint("b", w.rng.IntN(4)))
		}
		switch {
		case w.chance(0.5):
			w.birth()
			if w.chance(0.5) { // few answers, and then other limits
				w.gap(w.between(0, time.Second), 0)
				w.run(6, w.drawUnit)
				for i := range 4 {
					w.another(fmt.Sprint("b", i))
				}
			}
			if !w.setup.Still && w.chance(0.3) { // and moves before anybody is answered
				w.setup.Losses = append(w.setup.Losses, Loss{w.group, w.epoch, Span{0, w.now}})
				w.epoch = 1
				w.move()
			}
		case w.chance(0.5) && !w.setup.Still:
			if w.chance(0.7) { // another group loses what it held, and this slot is not in it
				w.setup.Losses = append(w.setup.Losses, Loss{99, uint32(1 + w.index), Span{0, w.now + time.Second}})
			}
			w.epoch = 1
			w.move()
		default:
			a := w.drawUnit()
			w.deposed(&a, w.between(0, time.Second), w.between(0, 200*time.Millisecond))
		}
	}
	w.run(40, w.drawUnit)
	return w
}

// another changes the numbers of a token bucket.
func (w *world) another(name string) {
	if l := w.limits[name]; l.Algorithm == bucket.TokenBucket && l.Window == int64(time.Second) {
		w.limit(name, tokenLimit([]uint64{1, 3, 100}[w.rng.IntN(3)], 1+w.rng.Uint64N(60)))
	}
}

// TestNoFalseAlarmsOverEpochs: thousands of right histories in which state is lost.
func TestNoFalseAlarmsOverEpochs(t *testing.T) {
	seeds := uint64(600)
	if testing.Short() {
		seeds = 150
	}
	checked, alarms := map[string]int{}, 0
	for seed := range seeds {
		w := epochRun(t, seed)
		for _, v := range All(&w.setup, w.ops) {
			checked[v.Checker] += v.Checked
			for _, f := range v.Findings {
				if t.Errorf("seed %d: %s", seed, f.Explain()); alarms == 5 {
					t.FailNow()
				}
				alarms++
			}
		}
	}
	t.Log(checked)
	for _, name := range []string{"exact", "once", "window", "starved", "early", "time", "kept", "replay", "linear"} {
		if checked[name] < int(seeds)/5 {
			t.Errorf("checker %s looked at %d answers of %d histories only", name, checked[name], seeds)
		}
	}
}

// TestFaultsAroundEpochsAreFound breaks what holds within an epoch, or over the
// beginning of one.
func TestFaultsAroundEpochsAreFound(t *testing.T) {
	unit := func(w *world, name string, n int) {
		w.run(n, func() ask {
			w.asked++
			return ask{cost: 1, buckets: []string{name}, id: fmt.Sprint("e", w.asked)}
		})
	}
	again := func(w *world, n int) { unit(w, "z", n) }
	full := map[string]bucket.Loss{"z": bucket.LossFull}
	cases := []struct {
		name     string
		limit    Limit
		onLoss   map[string]bucket.Loss
		checkers []string
		spoil    func(w *world)
	}{
		{"an epoch that begins full", tokenLimit(5, 60), nil, []string{"early", "replay", "window"}, func(w *world) { again(w, 80); w.spare(); again(w, 50) }},
		{"full though nothing had been taken", frozenLimit(400), nil, []string{"early", "replay", "linear"}, func(w *world) { again(w, 9); w.spare(); again(w, 20) }},
		{"a charge lost at a change in a new epoch", tokenLimit(2, 40), nil, []string{"replay"}, func(w *world) {
			again(w, 60)
			w.birth()
			w.gap(10*time.Second, 0)
			again(w, 18)
			w.lose(10)
			w.limit("z", tokenLimit(3, 40))
			again(w, 18)
		}},
		{"a window that begins empty", Limit{Algorithm: bucket.SlidingLog, Amount: 50, Window: int64(10 * time.Second)}, nil, []string{"early", "replay"}, func(w *world) { again(w, 20); w.spare(); again(w, 20) }},
		{"two bursts for one loss", frozenLimit(30), full, []string{"exact", "replay", "linear"}, func(w *world) { again(w, 40); w.birth(); again(w, 40); w.renew(); again(w, 40) }},
		{"entries lost in a new epoch", frozenLimit(200), full, []string{"replay", "linear"}, func(w *world) { again(w, 20); w.birth(); again(w, 60); w.lose(15); again(w, 60) }},
		{"a charge twice in a new epoch", frozenLimit(300), full, []string{"once"}, func(w *world) {
			w.copies = 0.3
			again(w, 20)
			w.birth()
			again(w, 90)
			w.pick(5, func(o *Op) bool { return o.Witness.Epoch == 2 && repeated(o) }).Witness.Repeated = false
		}},
		{"time that runs in a new epoch", tokenLimit(100, 20), nil, []string{"time"}, func(w *world) { again(w, 50); w.birth(); w.rate = 1.5; again(w, 300) }},
		{"time that stands still in a new epoch", tokenLimit(100, 20), nil, []string{"kept"}, func(w *world) {
			again(w, 50)
			w.birth()
			again(w, 50)
			w.gap(3*time.Second, 3*time.Second)
			again(w, 50)
		}},
		{"a denial from the future", tokenLimit(5, 20), nil, []string{"time"}, func(w *world) {
			w.peeking = true
			again(w, 200)
			w.pick(9, func(o *Op) bool { return o.Witness.Uncommitted }).Witness.SlotTime += 2 * time.Second
		}},
		{"a new leader further ahead than clocks differ", tokenLimit(5, 20), nil, []string{"time"}, func(w *world) { again(w, 50); w.outage(time.Second, 0); w.skew += 20 * time.Millisecond; again(w, 50) }},
		{"permits free in a new epoch", Limit{Algorithm: bucket.Concurrency, Amount: 3, Window: int64(time.Minute)}, nil, []string{"permits", "early"}, func(w *world) {
			for range 2 {
				w.run(20, func() ask { return ask{kind: Acquire, cost: 1, buckets: []string{"z"}} })
				w.spare()
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.setup.OnLoss, w.setup.Still = c.onLoss, true
			w.limit("z", c.limit)
			c.spoil(w)
			names, all := found(&w.setup, w.ops)
			for _, want := range c.checkers {
				if !slices.Contains(names, want) {
					t.Errorf("%s found nothing; found %v", want, all)
				}
			}
		})
	}
}

// TestOneRepetitionHidesNoOther: answers without an id are copies of nothing, and a
// repetition of one must not take others from the log.
func TestOneRepetitionHidesNoOther(t *testing.T) {
	w := spend(t, 100, 60)
	for i := range w.ops {
		w.ops[i].ID = "" // as where ids are the client's own, and unknown
	}
	repetitions := 0
	for i := range w.ops {
		if w.ops[i].Witness.Repeated {
			repetitions++
		}
	}
	lives, _ := sequence(&w.setup, w.ops)
	if len(lives) != 1 || len(lives[0].ops) != len(w.ops) || repetitions < 2 {
		t.Errorf("%d answers, of which %d repetitions, make %v", len(w.ops), repetitions, lives)
	}
}

// TestSalvagedSlotGoesOnWhereItWas: the first entry of a new epoch may have the very
// slot time of the last of the old one, and a repetition of what that one charged says
// nothing of a bucket that counts as used since.
func TestSalvagedSlotGoesOnWhereItWas(t *testing.T) {
	limit := frozenLimit(150)
	year := time.Duration(limit.Window)
	at := func(call time.Duration, epoch uint32, index uint64, slot time.Duration) Op {
		return Op{Kind: Take, Bucket: "z", Cost: 1, Version: 1, Capacity: 150, Call: call, Return: call + time.Millisecond, Witness: Witness{
			Group: 1, Epoch: epoch, Term: 2, Index: index, Position: 1, SlotTime: slot,
		}}
	}
	first := at(time.Second, 1, 10, time.Second)
	first.Outcome, first.Passed, first.Remaining, first.ResetAfter = Admitted, true, 149, year
	unknown := Op{Kind: Take, Bucket: "z", ID: "lost", Cost: 1, Call: 2 * time.Second, Return: Forever, Outcome: Unknown}
	denied := at(9*time.Second, 2, 7, 2*time.Second)
	denied.Outcome, denied.RetryAfter, denied.ResetAfter = Denied, year, 150*year
	repeated := at(10*time.Second, 2, 8, 2*time.Second)
	repeated.Outcome, repeated.Passed, repeated.ID, repeated.Remaining, repeated.Witness.Repeated = Admitted, true, "lost", 148, true
	s := &Setup{
		Limits: map[string]Limit{"z": limit}, OnLoss: map[string]bucket.Loss{"another": bucket.LossSalvage},
		Losses: []Loss{{1, 2, Span{3 * time.Second, 8 * time.Second}}},
	}
	for _, f := range Replay(s, []Op{first, unknown, denied, repeated}).Findings {
		t.Error(f.Explain())
	}
}

// TestToldInALaterLife: a charge whose answer was lost stood in the bucket all the time,
// also if its repetition is told where the state may be another.
func TestToldInALaterLife(t *testing.T) {
	limit := frozenLimit(150)
	year := time.Duration(limit.Window)
	at := func(id string, call time.Duration, epoch uint32, left uint64, slot time.Duration) Op {
		return Op{
			Kind: Take, Bucket: "z", ID: id, Cost: 1, Version: 1, Capacity: 150, Call: call, Return: call + time.Millisecond,
			Outcome: Admitted, Passed: true, Remaining: left, ResetAfter: time.Duration(150-left)*year - (slot - time.Second), // some has been refilled
			Witness: Witness{Group: 1, Epoch: epoch, Term: 2, Index: uint64(call / time.Millisecond), Position: 1, SlotTime: slot},
		}
	}
	for _, id := range []string{"lost", ""} { // known to the caller, or to its client library alone
		for _, epoch := range []uint32{1, 2} {
			repeated := at(id, 9*time.Second, epoch, 148, 2*time.Second)
			repeated.Witness.Repeated = true
			ops := []Op{
				at("first", time.Second, 1, 149, time.Second),
				at("third", 3*time.Second, 1, 147, 3*time.Second),
				repeated,
			}
			if id == "" {
				ops[2].Call = 2 * time.Second
			} else {
				ops = append(ops, Op{Kind: Take, Bucket: "z", ID: id, Cost: 1, Call: 2 * time.Second, Return: Forever, Outcome: Unknown})
			}
			s := &Setup{
				Limits: map[string]Limit{"z": limit}, OnLoss: map[string]bucket.Loss{"another": bucket.LossSalvage},
				// Where the bucket's group lost nothing, another may have, and the slot been there.
				Losses: []Loss{{3 - epoch, 2, Span{0, 8 * time.Second}}},
			}
			for _, v := range []Verdict{Replay(s, ops), Linear(s, ops)} {
				for _, f := range v.Findings {
					t.Errorf("id %q, epoch %d: %s", id, epoch, f.Explain())
				}
			}
		}
	}
}

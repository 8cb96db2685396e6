package check

import (
	"maps"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// birth begins a new epoch of the group: the slot is born without what it held, and
// its time begins anew.
func (w *world) birth() {
	w.gap(w.between(0, 3*time.Second), 0)
	w.table, w.entries, w.applied = bucket.NewTable(1), nil, 0
	w.births++
	w.epoch++
	w.term, w.index = 1, 2
	w.skew = -time.Duration(w.rate * float64(w.now))
	w.obey(bucket.BirthEntry(0, []bucket.Move{{Slot: 0, Revision: w.births}}), nil)
	w.late = nil // retries know how old they are
	w.now += time.Millisecond
}

// spare makes the new epoch a broken one: it begins as if nothing had been there.
func (w *world) spare() {
	w.birth()
	w.renew()
}

// deposed lets a leader that does not know of its successor deny once more, by its own
// time, what the log will decide otherwise. It returns what becomes of the time.
func (w *world) deposed(a *ask, took, lost time.Duration) {
	skew, term, index := w.skew, w.term, w.index
	w.outage(took, lost)
	now := w.skew
	w.skew, w.term, w.index, term, index = skew, term, index, w.term, w.index
	a.call = w.now
	w.peek(a)
	w.skew, w.term, w.index = now, term, index
}

// drawUnit asks for a unit of any bucket of the world.
func (w *world) drawUnit() ask {
	names := slices.Sorted(maps.Keys(w.limits))
	w.asked++
	a := ask{cost: 1 + w.rng.Uint64N(2), buckets: []string{names[w.rng.IntN(len(names))]}}
	if w.chance(0.5) {
		a.id = "u" + time.Duration(w.asked).String()
	}
	return a
}

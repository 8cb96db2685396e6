package bucket

import "sync"

// Table is the state of one group: its buckets slot by slot, the results of
// request ids, the rules they name, and its time.
//
// It has no lock: its caller serialises all methods. Only a Dump may be written
// and closed beside them.
type Table struct {
	state
	gate    *sync.Mutex // guards bytes that open dumps share, held by Apply and while a Dump copies one part
	work    work
	judge   judge
	discard Results // where results go that nobody asked for
	warmth  uint64  // what touching ahead has read; keeps those reads alive
}

// state is all that replicas agree on and a dump carries.
type state struct {
	slots   []slot
	held    int // slots held
	buckets int
	rules   rules
	ids     ids
	cursor  cursor
	time    int64  // ns of group time
	index   uint64 // of the last entry applied
	chain   uint64
}

// NewTable is an empty table for slots 0 … slots−1 (at most 65,536), none of them held.
func NewTable(slots int) *Table {
	t := &Table{gate: new(sync.Mutex)}
	t.slots = make([]slot, min(max(slots, 1), 1<<16))
	t.rules = newRules(nil)
	t.ids.index = newIndex()
	return t
}

// Time is the group time of the newest entry, in ns.
func (t *Table) Time() int64 { return t.time }

// Index is the log index of the newest entry applied.
func (t *Table) Index() uint64 { return t.index }

// Chain is a hash of all entries applied and all results given. Replicas of one
// index differ in it if they ever differed in either.
func (t *Table) Chain() uint64 { return t.chain }

// Slots is the number of slots the table was made for.
func (t *Table) Slots() int { return len(t.slots) }

// Buckets is the number of buckets in the table, fresh ones not yet dropped included.
func (t *Table) Buckets() int { return t.buckets }

// SlotBuckets is Buckets of one slot.
func (t *Table) SlotBuckets(slot uint16) int {
	if int(slot) >= len(t.slots) {
		return 0
	}
	return t.slots[slot].count
}

// Held says whether the group holds a slot.
func (t *Table) Held(slot uint16) bool { return t.holds(slot) }

// HeldCount is the number of slots held.
func (t *Table) HeldCount() int { return t.held }

// MemoryBytes is the size of the arrays that hold buckets, and of those that
// hold results and sessions. It walks all segments: some ms at ten million keys.
func (t *Table) MemoryBytes() (cells, results int) {
	for i := range t.slots {
		t.slots[i].segments(func(_ int, g *segment) { cells += len(g.buf) })
	}
	results = len(t.ids.pool.pages)*recordPage + len(t.ids.index.heads)*headsPage*4
	return cells, results
}

func (s *state) holds(slot uint16) bool {
	return int(slot) < len(s.slots) && s.slots[slot].held
}

// hold marks slots as held.
func (s *state) hold(slots []uint16) {
	for _, n := range slots {
		if !s.slots[n].held {
			s.slots[n].held = true
			s.held++
		}
	}
}

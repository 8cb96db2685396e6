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
	ruined  int    // absent slots that have remains; see clear.go
	homes   sketch // of buckets
	added   uint64 // buckets, in this process: see made
	bench   bench
	time    int64  // ns of group time
	index   uint64 // of the last entry applied
	chain   uint64

	phaseZero bool // see WithPhaseZero; not part of a dump
	counting  bool // see WithHomeCounts; not part of a dump
}

// bench is memory for one bucket that is worked on outside a judgement.
type bench struct {
	site site
	use  use
}

// Option changes how a new table counts.
type Option func(*Table)

// WithPhaseZero lets the windows of FixedWindow and SlidingWindow begin at
// multiples of the window, not shifted by each key's hash: for simulations,
// whose results are to be worked out by hand. All replicas of a group must agree.
func WithPhaseZero() Option { return func(t *Table) { t.phaseZero = true } }

// WithHomeCounts lets HomeBuckets count. It costs two cache misses for each
// bucket that comes or goes, changes no decision, and replicas need not agree.
func WithHomeCounts() Option { return func(t *Table) { t.counting = true } }

// NewTable is an empty table for slots 0 … slots−1 (at most 65,536), none of them held.
func NewTable(slots int, options ...Option) *Table {
	t := &Table{gate: new(sync.Mutex)}
	for _, o := range options {
		o(t)
	}
	t.slots = make([]slot, min(max(slots, 1), 1<<16))
	t.rules = newRules(nil)
	t.ids.index = newIndex()
	t.ids.named = make([]uint32, len(t.slots))
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

// Records is the number of results, sessions, and entries of logs and permits.
func (t *Table) Records() int { return t.ids.pool.used }

// Held says whether the group holds a slot.
func (t *Table) Held(slot uint16) bool { return t.holds(slot) }

// HeldCount is the number of slots held.
func (t *Table) HeldCount() int { return t.held }

// HomeBuckets is at least the number of buckets of one home in a slot: those
// whose keys have the lower 32 bits of Hi in common with key. It is rarely more,
// by about a 30,000th of all buckets; 0 without WithHomeCounts. For the leader,
// which judges the cap of a tenant.
func (t *Table) HomeBuckets(slot uint16, key Key) int { return int(t.homes.count(slot, key)) }

// Rules is the number of rules that the table knows: those that buckets and
// results name, the newest of each policy, and what lies between.
func (t *Table) Rules() int { return t.rules.live }

// MemoryBytes is the size of the arrays that hold buckets, and of those that
// hold results and sessions. It walks all segments: some ms at ten million keys.
func (t *Table) MemoryBytes() (cells, results int) {
	for i := range t.slots {
		t.slots[i].segments(func(_ int, g *segment) { cells += len(g.buf) })
	}
	results = len(t.ids.pool.pages)*recordPage + len(t.ids.index.heads)*headsPage*4
	return cells, results
}

// entered keeps the books of a cell that was added.
func (s *state) entered(slot uint16, k Key, ref uint32) {
	s.buckets++
	s.added++
	s.rules.name(ref)
	if s.counting {
		s.homes.add(slot, k, 1)
	}
}

// left keeps the books of a cell that is gone.
func (s *state) left(slot uint16, k Key, ref uint32) {
	s.slots[slot].count--
	s.buckets--
	s.rules.unname(ref)
	if s.counting {
		s.homes.add(slot, k, ^uint32(0))
	}
}

func (s *state) holds(slot uint16) bool {
	return int(slot) < len(s.slots) && s.slots[slot].state == SlotHeld
}

// hold marks slots as held that no move has ever named here.
func (s *state) hold(slots []uint16) {
	for _, n := range slots {
		if sl := &s.slots[n]; sl.state == SlotAbsent && sl.revision == 0 && s.empty(n) {
			s.slots[n].state = SlotHeld
			s.held++
		}
	}
}

package bucket

import "math"

// version is a rule that cells and results name, and what the table knows of it.
//
// The versions of one policy are a chain from the oldest that is still needed to
// the newest. A rule of the newest version but with another limit stands aside:
// it has no successor, and cells move to it and from it when a take says so.
type version struct {
	Rule
	began int64  // ns of group time; before it the version before counts
	thaw  int64  // when buckets count as recovered that were carried over from a larger limit; see pinBit
	idle  int64  // since when refs is 0
	refs  uint64 // cells, and answers kept in results
	next  uint32 // number of the next newer version, 0: none known
	older uint32 // how many older versions have it as their next; no part of a dump
	aside bool
}

// rules numbers versions from 1 on; 0 is none. A number whose version nobody
// needs any more is given again, the lowest first.
type rules struct {
	list   []version // by number − 1; one without an algorithm is free
	room   int       // no number ≤ room is free
	live   int
	now    int64             // group time of the entry that is applied
	cuts   uint64            // how often a version got a successor; no part of a dump
	newest map[uint64]uint32 // policy → number of its newest version
	asides map[Rule]uint32
}

func newRules(list []version) rules {
	r := rules{list: list, newest: map[uint64]uint32{}, asides: map[Rule]uint32{}}
	for i := range list {
		switch v := &list[i]; {
		case !v.used():
			continue
		case v.aside:
			r.asides[v.Rule] = uint32(i + 1)
		case v.next == 0:
			r.newest[v.Policy] = uint32(i + 1)
		case int(v.next) <= len(list):
			list[v.next-1].older++
		}
		r.live++
	}
	return r
}

func (v *version) used() bool { return v.Limit.Algorithm != 0 }

// version is the version of a number. A number never given denies all.
func (r *rules) version(n uint32) *version {
	if n == 0 || int(n) > len(r.list) {
		return &version{}
	}
	return &r.list[n-1]
}

// standing says how a rule stands to what is known here.
type standing uint8

const (
	currentRule standing = iota // the newest, one that stands aside, or of a policy that is not known
	newerRule                   // to be cut over to
	staleRule
)

// stand says how u stands, and notes its number if it has one.
func (r *rules) stand(u *use) standing {
	if u.ref != 0 {
		if v := &r.list[u.ref-1]; v.next == 0 && !v.aside {
			return currentRule
		}
		u.ref = 0
	}
	n := r.newest[u.Policy]
	if n == 0 {
		return currentRule
	}
	v := &r.list[n-1]
	switch {
	case v.Version > u.Version:
		return staleRule
	case v.Version < u.Version:
		return newerRule
	case v.Rule == u.Rule:
		u.ref = n
	default:
		u.ref = r.asides[u.Rule]
	}
	return currentRule
}

// refer is the number of u's rule, given now if it has none.
func (r *rules) refer(u *use) uint32 {
	if u.ref == 0 {
		u.ref = r.intern(u.Rule)
	}
	return u.ref
}

// intern is the number of a rule that is not stale, given now if it has none.
func (r *rules) intern(rule Rule) uint32 {
	u := use{Rule: rule}
	if r.stand(&u); u.ref != 0 {
		return u.ref
	}
	v := version{Rule: rule, began: r.now, thaw: math.MinInt64, idle: r.now}
	was := r.newest[rule.Policy]
	if was != 0 && r.list[was-1].Version == rule.Version {
		v.aside = true
		n := r.give(v)
		r.asides[rule] = n
		return n
	}
	if was != 0 {
		old := &r.list[was-1]
		v.older, v.thaw = 1, max(old.thaw, after(r.now, old.Limit.fill()))
	}
	n := r.give(v)
	if was != 0 {
		r.list[was-1].next = n
		r.cuts++
	}
	r.newest[rule.Policy] = n
	return n
}

// give numbers v.
func (r *rules) give(v version) uint32 {
	for r.room < len(r.list) && r.list[r.room].used() {
		r.room++
	}
	if r.room == len(r.list) {
		r.list = append(r.list, version{})
	}
	r.list[r.room] = v
	r.live++
	return uint32(r.room + 1)
}

// name counts one more cell or answer that names n.
func (r *rules) name(n uint32) {
	if n != 0 && int(n) <= len(r.list) {
		r.list[n-1].refs++
	}
}

// unname counts one less.
func (r *rules) unname(n uint32) {
	if n == 0 || int(n) > len(r.list) {
		return
	}
	v := &r.list[n-1]
	if v.refs--; v.refs == 0 {
		v.idle = r.now
	}
}

// visit forgets version n if it can: nothing names it, no older version needs it
// to be priced, and the last that did is a horizon ago, so that whoever still
// matches an older version is told so.
func (r *rules) visit(n uint32) {
	v := &r.list[n-1]
	if !v.used() || v.refs > 0 || v.older > 0 || !expired(v.idle, r.now, Horizon) {
		return
	}
	switch {
	case v.aside:
		delete(r.asides, v.Rule)
	case v.next != 0:
		r.list[v.next-1].older--
	default:
		delete(r.newest, v.Policy)
	}
	*v = version{}
	r.live--
	r.room = min(r.room, int(n-1))
	r.trim()
}

// trim lets go of free numbers at the end.
func (r *rules) trim() {
	for n := len(r.list); n > 0 && !r.list[n-1].used(); n-- {
		r.list = r.list[:n-1]
	}
	r.room = min(r.room, len(r.list))
}

// fill is the ns in which an empty bucket of this limit becomes fresh.
func (l *Limit) fill() int64 {
	switch {
	case l.Amount == 0:
		return 0
	case l.Algorithm == SlidingWindow:
		return 2 * l.Window
	case !l.Algorithm.HasBurst():
		return l.Window
	}
	return l.wait(level{}, l.Burst, 0)
}

package client

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// denials remembers the newest denial of requests that are asked again and again, by what
// they ask for: their encoding, which has all attributes and the cost. It is bounded: a
// request takes the place of another one that is hashed to it, which is then asked about
// once more.
type denials struct {
	most   time.Duration // for which a denial is remembered; 0: none is
	seed   maphash.Seed
	latest atomic.Int64 // client time when the last one is over, so that nobody looks behind it
	shards [denialShards]denialShard
}

type denialShard struct {
	mu     sync.Mutex // guards places; held for a look or a change
	places []denial   // denialPlaces; nil: none yet
}

const (
	denialShards = 16
	denialPlaces = 256 // of a shard
	maxDenied    = 512 // bytes of a request that is remembered
	hammered     = 3   // denials of one request, each asked for before the time that the one before told
	mostMemory   = time.Second
	usualMemory  = 100 * time.Millisecond
)

// denial is one place. The times are client time.
type denial struct {
	body  []byte // of the request; empty: nobody is here
	times int    // how often it was denied, each asked for before the time that the one before told
	told  int64  // when the newest denial said to ask again
	until int64  // what was said stands until then, and is answered here; 0: the cluster is asked
	said  *Decision
	heard int64 // when said came
}

// longestTold bounds the time that denial.told is ahead: it only counts who comes before it.
const longestTold = time.Hour

func newDenials(most time.Duration) *denials { return &denials{most: most, seed: maphash.MakeSeed()} }

// place locks the shard of a request and returns where it stands: nil if no place was made
// there yet. mine is false if another request has it, or none.
func (m *denials) place(body []byte, make func() []denial) (s *denialShard, d *denial, mine bool) {
	h := maphash.Bytes(m.seed, body)
	s = &m.shards[h%denialShards]
	s.mu.Lock()
	if s.places == nil {
		if s.places = make(); s.places == nil {
			return s, nil, false
		}
	}
	d = &s.places[h/denialShards%denialPlaces]
	return s, d, len(d.body) > 0 && bytes.Equal(d.body, body)
}

func noPlaces() []denial   { return nil }
func somePlaces() []denial { return make([]denial, denialPlaces) }

// recall returns what a request was told that it would be told again at now.
func (m *denials) recall(body []byte, now int64) (Decision, bool) {
	if m.latest.Load() <= now {
		return Decision{}, false
	}
	s, d, mine := m.place(body, noPlaces)
	defer s.mu.Unlock()
	if !mine || d.until <= now {
		return Decision{}, false
	}
	return aged(d.said, time.Duration(now-d.heard)), true
}

// hear notes a denial that came at now to a request that was asked at asked. It says whether
// that is asked so often that it is worth remembering, and not remembered yet.
func (m *denials) hear(body []byte, wait time.Duration, asked, now int64) (worth bool) {
	s, d, mine := m.place(body, somePlaces)
	defer s.mu.Unlock()
	if !mine {
		*d = denial{body: append(d.body[:0], body...)}
	}
	if asked >= d.told {
		d.times = 0
	}
	d.times++
	d.told = now + int64(min(wait, longestTold))
	return d.times >= hammered && d.until <= now
}

// remember has a denial that came at now answered here until a time.
func (m *denials) remember(body []byte, said Decision, now, until int64) {
	s, d, mine := m.place(body, noPlaces)
	defer s.mu.Unlock()
	if !mine || until <= max(d.until, now) {
		return
	}
	said.Limits = slices.Clone(said.Limits) // its caller has the same
	d.said, d.heard, d.until = &said, now, until
	for latest := m.latest.Load(); latest < until && !m.latest.CompareAndSwap(latest, until); {
		latest = m.latest.Load()
	}
}

// forget forgets all.
func (m *denials) forget() {
	if m.latest.Swap(0) == 0 {
		return
	}
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		clear(s.places)
		s.mu.Unlock()
	}
}

// aged is what a denial says that is so old.
func aged(said *Decision, age time.Duration) Decision {
	d := *said
	d.Remembered = true
	d.Answer.age(age)
	d.Limits = slices.Clone(said.Limits)
	for i := range d.Limits {
		d.Limits[i].age(age)
	}
	return d
}

// age lets time pass.
func (a *Answer) age(by time.Duration) {
	a.ResetAfter = max(a.ResetAfter-by, 0)
	if a.RetryAfter > 0 {
		a.RetryAfter = max(a.RetryAfter-by, 1)
	}
}

package check

import (
	"time"

	"github.com/ringlimit/ringlimit/bucket"
)

// Limit is the numbers of a bucket. Only the type is shared with the product: no
// checker uses its arithmetic.
type Limit = bucket.Limit

// Span is a time by the checker's clock.
type Span struct{ From, To time.Duration }

func (s Span) overlaps(from, to time.Duration) bool { return s.From <= to && from <= s.To }

// Fault is something broken on purpose.
type Fault struct {
	Name string
	Span
}

// Silence is a time in which a group has no live majority. From is when it was
// certainly gone, with the leader's lease; To when it was not yet restored.
type Silence struct {
	Group uint32
	Span
}

// Given are tokens that a bucket got by intent, at some moment of a time: an
// override, another limit. What a loss gives is known from Setup.OnLoss.
type Given struct {
	Bucket string // empty: each
	Tokens uint64
	Span
}

// Setup is what a history cannot tell by itself.
type Setup struct {
	// Limits has each bucket. Buckets that are not in it are judged by what needs
	// no limit.
	Limits map[string]Limit
	// Changed has the limit of buckets by policy version, where it changed during
	// the run: the version of an answer decides, Limits is for versions that are
	// not listed.
	Changed map[string]map[uint64]Limit

	// Leased has the buckets of leased policies, and how long clients may keep their
	// tokens. What one answer tells of such a bucket says little about the next: another
	// client may hold tokens of it, and return some. Only the bound on all is judged.
	Leased map[string]time.Duration

	Faults     []Fault
	Strict     bool // no answer may be made without the cluster
	Silences   []Silence
	Given      []Given
	Losses     []Loss                 // new epochs of groups, beside those that answers show
	Memory     *Memory                // who held the state of groups and lost it; nil: not known
	OnLoss     map[string]bucket.Loss // what buckets count as after a loss, by name; not listed: LossEmpty
	Still      bool                   // no slot moves from one group to another
	Spread     []string               // buckets that share requests with buckets of other groups: what another group denies is given back a moment later
	Exactly    []string               // buckets whose takes were retried until definite, and asked for more than there is: exactly their capacity is admitted
	Bent       bool                   // clocks of nodes were set wrong: slot time is not held against the checker's clock
	Drift      float64                // how much faster or slower than the checker's a node's clock may run; 0: DefaultDrift
	LostTime   time.Duration          // that one fault may cost a bucket in refill; 0: DefaultLostTime
	Search     time.Duration          // bounds Linear for each bucket; 0: DefaultSearch
	MinAnswers int                    // fewer than so many admissions make a run void; 0: DefaultMinAnswers

	known bool // Losses has all of them
}

// The values that a zero in Setup stands for.
const (
	DefaultDrift      = 200e-6
	DefaultLostTime   = 300 * time.Millisecond // one replication delay
	DefaultSearch     = 5 * time.Second
	DefaultMinAnswers = 100
)

func (s *Setup) drift() float64 {
	if s.Drift > 0 {
		return s.Drift
	}
	return DefaultDrift
}

func (s *Setup) lostTime() time.Duration {
	if s.LostTime > 0 {
		return s.LostTime
	}
	return DefaultLostTime
}

// limit is the limit of a bucket under a policy version.
func (s *Setup) limit(bucket string, version uint64) (Limit, bool) {
	if l, ok := s.Changed[bucket][version]; ok {
		return l, true
	}
	l, ok := s.Limits[bucket]
	return l, ok
}

// largest is the largest capacity that a bucket had.
func (s *Setup) largest(bucket string) uint64 {
	most := capacity(s.Limits[bucket])
	for _, l := range s.Changed[bucket] {
		most = max(most, capacity(l))
	}
	return most
}

// steady is the limit of a bucket that has one and the same all the time.
func (s *Setup) steady(bucket string) (Limit, bool) {
	l, ok := s.Limits[bucket]
	return l, ok && len(s.Changed[bucket]) == 0
}

// loosest is a limit that admits whatever the limits of a bucket admit, if all are
// of one algorithm and, of window algorithms, of one window.
func (s *Setup) loosest(name string) (Limit, bool) {
	l, ok := s.Limits[name]
	for _, other := range s.Changed[name] {
		if !ok || other.Algorithm != l.Algorithm || !l.Algorithm.HasBurst() && other.Window != l.Window {
			return l, false
		}
		burst := max(l.Burst, other.Burst)
		if perNano(other) > perNano(l) || !l.Algorithm.HasBurst() && other.Amount > l.Amount {
			l = other
		}
		if l.Algorithm.HasBurst() {
			l.Burst = burst
		}
	}
	return l, ok
}

// given says whether a bucket may have got tokens by intent.
func (s *Setup) given(bucket string) bool {
	for _, g := range s.Given {
		if g.Bucket == "" || g.Bucket == bucket {
			return true
		}
	}
	return false
}

// salvages says whether any bucket is salvaged: its slot then goes on in time.
func (s *Setup) salvages() bool {
	for _, l := range s.OnLoss {
		if l == bucket.LossSalvage {
			return true
		}
	}
	return false
}

// set is a list of names to look up.
func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// faultsIn counts the faults that overlap a time.
func (s *Setup) faultsIn(from, to time.Duration) (n int) {
	for _, f := range s.Faults {
		if f.overlaps(from, to) {
			n++
		}
	}
	return n
}

// capacity is the largest cost that a fresh bucket admits.
func capacity(l Limit) uint64 {
	switch {
	case l.Amount == 0:
		return 0
	case l.Algorithm == bucket.TokenBucket || l.Algorithm == bucket.LeakyBucket:
		return l.Burst
	}
	return l.Amount
}

// refills says whether a level can rise by a whole token within a time.
func refills(l Limit, span time.Duration) bool {
	return perNano(l)*float64(span) >= 0.5
}

// perNano is the rate in tokens a ns.
func perNano(l Limit) float64 { return float64(l.Amount) / float64(l.Window) }

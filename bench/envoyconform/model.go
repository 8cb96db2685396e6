package main

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/policy/descriptor"
)

// A difference is one way in which ringlimit answers on purpose unlike the reference.
// docs/envoy.md lists them for operators.
type difference uint

const (
	deniedUncounted difference = iota
	slidingWindow
	keysApart
	shadowStays
	nothingReplaced
	unlimitedTold
	lookAhead
	resetWhenFresh
	ownLimit
	givenBack
	largestAmount
	quotaReset
	differences
)

var toldDifferences = [differences]string{
	deniedUncounted: "a denied request is not counted, and limit_remaining of a denial is what is left",
	slidingWindow:   "the window slides: no second amount around an edge (not with fixed_window)",
	keysApart:       "keys and values are told apart: a=b_c is not a_b=c, and neither are their counters",
	shadowStays:     "a rule in shadow mode does not lift the more general rule in force",
	nothingReplaced: "replaces replaces nothing: descriptors are independent",
	unlimitedTold:   "unlimited is no limit (remaining 0) or a limit of 10^9, not one of 2^32-1",
	lookAhead:       "hits_addend 0 asks whether one more would pass, not whether the limit is exceeded",
	resetWhenFresh:  "duration_until_reset is the time until nothing is used, 0 where nothing is",
	ownLimit:        "a limit in the request is an attribute for policies, no limit by itself",
	givenBack:       "negative hits change nothing and are never denied (this version of the reference counts them)",
	largestAmount:   "amounts are at most 10^9",
	quotaReset:      "a violated quota_mode limit has a duration_until_reset too",
}

// set is some of the differences.
type set uint

const (
	noneOfThem set = 0
	allOfThem  set = 1<<differences - 1
)

func (s set) has(d difference) bool    { return s&(1<<d) != 0 }
func (s set) without(d difference) set { return s &^ (1 << d) }

// status is what is compared of a descriptor's status.
type status struct {
	code      rls.RateLimitResponse_Code
	limited   bool // there is a current_limit
	amount    uint32
	unit      rls.RateLimitResponse_RateLimit_Unit
	name      string
	remaining uint32
	reset     int64 // s; −1: none
}

// model predicts answers: without differences those of the reference, with all of
// them ours, with some of them what would be answered in between.
type model struct {
	domains map[string]*domain
	with    set
	index   *policy.Index // of the imported policies, for rules in shadow mode
	sliding bool
	counts  map[string]*count
}

// count is what was used by a key: in the window that begins at start, and, where
// windows slide, in the one before it. Times are ns of our time.
type count struct {
	start, window int64
	used, before  uint64
	expires       int64
}

func newModel(c *testCase, index *policy.Index, with set) *model {
	m := &model{domains: map[string]*domain{}, with: with, index: index, counts: map[string]*count{}}
	m.sliding = with.has(slidingWindow) && c.algorithm == bucket.SlidingWindow
	for _, d := range c.domains {
		m.domains[d.name] = d
	}
	return m
}

// found is the rule of a descriptor.
type found struct {
	*rule
	rate   *rate    // nil: none applies
	own    bool     // the limit is the request's own
	shared []string // of each entry: what stands for its value in the key; "": itself
}

// answer predicts one answer; nil: an error.
func (m *model) answer(a *ask) []status {
	in := a.in
	if in.GetDomain() == "" || len(in.GetDescriptors()) == 0 {
		return nil
	}
	rules := make([]found, len(in.GetDescriptors()))
	replaced := map[string]bool{}
	for i, d := range in.GetDescriptors() {
		rules[i] = m.find(in.GetDomain(), d)
		if r := rules[i].rate; r != nil && r.replaces != "" && !m.with.has(nothingReplaced) {
			replaced[r.replaces] = true
		}
	}
	out := make([]status, len(rules))
	for i, f := range rules {
		switch {
		case f.rate == nil, !f.rate.unlimited && f.rate.name != "" && replaced[f.rate.name]:
			out[i] = status{code: rls.RateLimitResponse_OK, reset: -1}
		case f.rate.unlimited:
			out[i] = status{code: rls.RateLimitResponse_OK, reset: -1, remaining: math.MaxUint32}
		default:
			out[i] = m.judge(a, in.GetDescriptors()[i], &f)
		}
	}
	return out
}

// find walks the tree of a domain.
func (m *model) find(name string, d *common.RateLimitDescriptor) found {
	dom := m.domains[name]
	if dom == nil {
		return found{}
	}
	if l := d.GetLimit(); l != nil && !m.with.has(ownLimit) {
		return found{rule: &rule{}, rate: &rate{amount: l.GetRequestsPerUnit(), unit: l.GetUnit().String()}, own: true}
	}
	at := &dom.rule
	shared := make([]string, len(d.GetEntries()))
	for i, e := range d.GetEntries() {
		next := at.pick(e.GetKey(), e.GetValue(), m.with.has(keysApart))
		if next == nil {
			return found{}
		}
		if next.share && !next.isExactly(e.GetKey(), e.GetValue(), m.with.has(keysApart)) {
			shared[i] = strings.TrimPrefix(next.path(), e.GetKey()+"_")
		}
		at = next
	}
	return found{rule: at, rate: at.rate, shared: shared}
}

// path is how the reference names a rule among its siblings.
func (x *rule) path() string {
	if x.value == "" {
		return x.key
	}
	return x.key + "_" + x.value
}

// isExactly says whether an entry names a rule as it is written, * included.
func (x *rule) isExactly(key, value string, apart bool) bool {
	if apart {
		return false // a value that ends in * is a value like any other
	}
	return x.path() == key+"_"+value
}

// pick is the child for an entry: the value, the first wildcard, the key.
func (x *rule) pick(key, value string, apart bool) *rule {
	for _, fits := range []func(*rule) bool{
		func(y *rule) bool {
			if apart {
				return y.value != "" && !strings.HasSuffix(y.value, "*") && y.key == key && y.value == value
			}
			return y.path() == key+"_"+value
		},
		func(y *rule) bool {
			if apart {
				text, wild := strings.CutSuffix(y.value, "*")
				return wild && y.key == key && strings.HasPrefix(value, text)
			}
			text, wild := strings.CutSuffix(y.path(), "*")
			return wild && strings.HasPrefix(key+"_"+value, text)
		},
		func(y *rule) bool {
			if apart {
				return y.key == key && y.value == ""
			}
			return y.path() == key
		},
	} {
		for _, y := range x.children {
			if fits(y) {
				return y
			}
		}
	}
	return nil
}

// judge predicts the status of a descriptor that a limit applies to.
func (m *model) judge(a *ask, d *common.RateLimitDescriptor, f *found) status {
	in, now := a.in, a.ns()
	amount, unit := uint64(f.rate.amount), units[strings.ToUpper(f.rate.unit)]
	shadow, quota, name := f.shadow, f.quota, f.rate.name
	key := m.key(a.at, in.GetDomain(), d, f)
	if m.with.has(shadowStays) {
		hit, enforced := m.hit(in.GetDomain(), d)
		if hit == nil {
			return status{code: rls.RateLimitResponse_UNKNOWN} // which nobody answers
		}
		key = keyOf(hit, in.GetDomain(), d)
		if enforced && (shadow || quota) {
			if hit.Limit.Window == 1e6 { // the policy that stands for no limit
				return status{code: rls.RateLimitResponse_OK, reset: -1}
			}
			amount, shadow, quota = hit.Limit.Amount, false, false
			for _, u := range units {
				if int64(u.window) == hit.Limit.Window {
					unit = u
				}
			}
		}
	}
	told := uint32(amount)
	if m.with.has(largestAmount) {
		amount = min(amount, 1e9)
		told = uint32(amount)
	}
	out := status{code: rls.RateLimitResponse_OK, limited: true, amount: told, unit: unit.unit, name: name}
	c := m.count(key, now, int64(unit.window))
	hits := uint64(max(1, in.GetHitsAddend()))
	if d.GetHitsAddend() != nil {
		hits = d.GetHitsAddend().GetValue()
	}
	back := d.GetIsNegativeHits() && m.with.has(givenBack)
	if back {
		hits = 0
	}
	used, over := m.take(c, now, amount, hits)
	if used < amount && !(over && !m.with.has(deniedUncounted)) {
		out.remaining = uint32(amount - used)
	}
	out.reset = m.reset(c, now)
	switch {
	case !over || back || shadow:
	case quota:
		if !m.with.has(quotaReset) {
			out.reset = -1
		}
	default:
		out.code = rls.RateLimitResponse_OVER_LIMIT
	}
	if m.with.has(quotaReset) && quota && out.code == rls.RateLimitResponse_OVER_LIMIT {
		out.code = rls.RateLimitResponse_OK
	}
	return out
}

// take counts hits and says what is used then, and whether it is too much.
func (m *model) take(c *count, now int64, amount, hits uint64) (used uint64, over bool) {
	used = m.used(c, now)
	switch {
	case hits == 0 && m.with.has(lookAhead):
		return used, used+1 > amount
	case m.with.has(deniedUncounted):
		if used+hits > amount {
			return used, hits > 0
		}
	}
	c.used += hits
	return used + hits, used+hits > amount
}

// used is what counts now.
func (m *model) used(c *count, now int64) uint64 {
	if !m.sliding {
		return c.used
	}
	hi, lo := bits.Mul64(c.before, uint64(c.window-(now-c.start)))
	part, _ := bits.Div64(hi, lo, uint64(c.window))
	return part + c.used
}

// reset is the time until the end of the window or, with resetWhenFresh, until nothing
// is used: in seconds, rounded up.
func (m *model) reset(c *count, now int64) int64 {
	gone := now - c.start
	left := c.window - gone
	if m.with.has(resetWhenFresh) {
		switch {
		case c.used == 0 && (c.before == 0 || !m.sliding):
			left = 0
		case !m.sliding:
		case c.used == 0:
			left = max(0, forgets(c.before, c.window)-gone)
		default:
			left += forgets(c.used, c.window)
		}
	}
	return (left + 1e9 - 1) / 1e9
}

// forgets is how much of a window must have gone for less than one of n to count: the
// least at with n × (window − at) < window.
func forgets(n uint64, window int64) int64 {
	return window - (window+int64(n)-1)/int64(n) + 1
}

// count finds the counter of a key, as it is now.
func (m *model) count(key string, now, window int64) *count {
	start := now / window * window // epoch is the beginning of all windows
	c := m.counts[key]
	expired := c != nil && !m.with.has(keysApart) && c.expires <= now // Redis forgets
	if c == nil || expired || c.window != window && m.with.has(keysApart) {
		c = &count{start: start, window: window}
		m.counts[key] = c
	}
	c.expires = now + window
	if m.with.has(keysApart) && c.start != start {
		if c.start+window == start {
			c.before = c.used
		} else {
			c.before = 0
		}
		c.start, c.used = start, 0
	}
	c.window = window
	return c
}

// key is the name of a counter.
func (m *model) key(unix int64, domain string, d *common.RateLimitDescriptor, f *found) string {
	if m.with.has(keysApart) {
		b := fmt.Sprintf("%q %p %v", domain, f.rule, f.own)
		if f.own {
			b = fmt.Sprintf("%q %s", domain, f.rate.unit)
		}
		for i, e := range d.GetEntries() {
			if f.shared == nil || f.shared[i] == "" {
				b += fmt.Sprintf(" %q=%q", e.GetKey(), e.GetValue())
			}
		}
		return b
	}
	b := domain + "_"
	for i, e := range d.GetEntries() {
		value := e.GetValue()
		if f.shared != nil && f.shared[i] != "" {
			value = f.shared[i]
		}
		b += e.GetKey() + "_" + value + "_"
	}
	window := int64(units[strings.ToUpper(f.rate.unit)].window.Seconds())
	if m.sliding {
		return b + f.rate.unit
	}
	return b + strconv.FormatInt(unix/window*window, 10)
}

// hit is the imported policy that a descriptor falls under: the one in force, if there
// is any, else the one in shadow mode.
func (m *model) hit(domain string, d *common.RateLimitDescriptor) (p *policy.Policy, enforced bool) {
	for _, h := range m.index.Match(attributes(domain, d), nil) {
		if h.Policy.Mode != policy.Shadow {
			return h.Policy, true
		}
		p = h.Policy
	}
	return p, false
}

// keyOf is a policy with the values of its scope.
func keyOf(p *policy.Policy, domain string, d *common.RateLimitDescriptor) string {
	r := attributes(domain, d)
	key := fmt.Sprintf("%q", p.ID)
	for _, name := range p.Scope {
		if name == "tenant" {
			key += fmt.Sprintf(" %q", r.Tenant)
		}
		for _, a := range r.Attributes {
			if a.Name == name {
				key += fmt.Sprintf(" %q", a.Value)
			}
		}
	}
	return key
}

// attributes is what policies see of a descriptor.
func attributes(domain string, d *common.RateLimitDescriptor) *policy.Request {
	var entries []descriptor.Entry
	for _, e := range d.GetEntries() {
		entries = append(entries, descriptor.Entry{Key: e.GetKey(), Value: e.GetValue()})
	}
	r := &policy.Request{Attributes: []policy.Attribute{{Name: descriptor.Domain, Value: domain}, {Name: descriptor.Shape, Value: descriptor.ShapeOf(entries)}}}
	for i, name := range descriptor.Names(nil, entries) {
		if value := descriptor.Value(name, entries[i].Value); name == "tenant" {
			r.Tenant = value
		} else {
			r.Attributes = append(r.Attributes, policy.Attribute{Name: name, Value: value})
		}
	}
	return r
}

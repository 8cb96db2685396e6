package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringlimit/ringlimit/bucket"
)

// epoch is where our time begins: a moment at which the windows of all units begin by
// the clock that the reference reads, in unix seconds.
const epoch = 15330 * 24 * 3600

// testCase is a configuration and requests to it, in the order of time.
type testCase struct {
	seed      uint64
	plain     bool // nothing but limits and requests of one hit each
	algorithm bucket.Algorithm
	domains   []*domain
	asks      []ask
}

// ask is one request.
type ask struct {
	at    int64 // unix seconds
	place int   // in its case
	in    *rls.RateLimitRequest
}

// ns is our time of a request, since epoch. Those of one second, which are one moment
// to the reference, are a millisecond apart.
func (a *ask) ns() int64 { return (a.at-epoch)*1e9 + int64(a.place)*1e6 }

type domain struct {
	name string
	rule // whose children are the descriptors
}

// rule is one descriptor of a configuration.
type rule struct {
	key, value string
	rate       *rate
	shadow     bool
	quota      bool
	share      bool
	detailed   bool
	children   []*rule
}

type rate struct {
	unlimited bool
	amount    uint32
	unit      string
	name      string
	replaces  string
}

// The words that configurations and requests are made of. Some look alike once a key
// and a value stand with a _ between them, or two entries do.
var (
	domainNames = []string{"edge", "edge_a", "inner"}
	keys        = []string{"a", "b", "a_b", "tenant", "method"}
	ruleValues  = []string{"", "", "", "x", "y", "b_x", "x*", "xy*", "b*", "*"}
	values      = []string{"x", "x", "y", "xy", "xyz", "b_x", "x_b", "z", "", "x*"}
	unitNames   = []string{"second", "minute", "HOUR", "Day", "week", "month", "year"}
)

func oneOf[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func chance(r *rand.Rand, one int) bool { return r.IntN(one) == 0 }

// generate makes the case of a seed.
func generate(seed uint64) *testCase {
	r := rand.New(rand.NewPCG(seed, 20))
	c := &testCase{seed: seed, plain: chance(r, 2), algorithm: oneOf(r, []bucket.Algorithm{bucket.SlidingWindow, bucket.FixedWindow})}
	few := keys[:2+r.IntN(len(keys)-1)]
	for _, name := range domainNames[:1+r.IntN(len(domainNames))] {
		c.domains = append(c.domains, &domain{name, rule{children: c.rules(r, few, 1+r.IntN(3))}})
	}
	now := int64(epoch) + r.Int64N(400*24*3600)
	step := oneOf(r, []int64{1, 2, 60, 1800, 50_000, 400_000})
	for i := range 4 + r.IntN(16) {
		if chance(r, 2) {
			now += r.Int64N(step + 1)
		}
		c.asks = append(c.asks, ask{now, i, request(r, c, few)})
	}
	return c
}

// rules makes one level of a configuration.
func (c *testCase) rules(r *rand.Rand, keys []string, depth int) (level []*rule) {
	seen := map[string]bool{}
	for range 1 + r.IntN(4) {
		x := &rule{key: oneOf(r, keys), value: oneOf(r, ruleValues), detailed: chance(r, 10)}
		if !c.plain {
			x.shadow, x.quota = chance(r, 8), chance(r, 20)
		}
		if name := x.key + "=" + x.value; seen[name] {
			continue
		} else {
			seen[name] = true
		}
		x.share = strings.HasSuffix(x.value, "*") && chance(r, 3)
		if !chance(r, 4) {
			x.rate = c.rate(r)
		}
		if depth > 1 {
			x.children = c.rules(r, keys, depth-1)
		}
		level = append(level, x)
	}
	return level
}

func (c *testCase) rate(r *rand.Rand) *rate {
	if c.plain {
		return &rate{amount: uint32(1 + r.IntN(5)), unit: oneOf(r, unitNames)}
	}
	if chance(r, 10) {
		return &rate{unlimited: true, name: oneOf(r, []string{"", "first"})}
	}
	out := &rate{amount: uint32(r.IntN(6)), unit: oneOf(r, unitNames), name: oneOf(r, []string{"", "", "first", "second"})}
	if chance(r, 50) {
		out.amount = 4_000_000_000
	}
	if chance(r, 6) {
		out.replaces = oneOf(r, []string{"third", "first", "second"})
		if out.replaces == out.name {
			out.replaces = ""
		}
	}
	return out
}

// request makes a request, mostly of descriptors that the configuration knows.
func request(r *rand.Rand, c *testCase, keys []string) *rls.RateLimitRequest {
	d := oneOf(r, c.domains)
	in := &rls.RateLimitRequest{Domain: d.name}
	switch {
	case chance(r, 40):
		in.Domain = "unknown"
	case chance(r, 80):
		in.Domain = ""
	}
	if !c.plain && chance(r, 4) {
		in.HitsAddend = uint32(r.IntN(4))
	}
	if chance(r, 80) {
		return in
	}
	for range 1 + r.IntN(3) {
		x := &common.RateLimitDescriptor{}
		level := d.children
		for len(x.Entries) == 0 || len(level) > 0 && !chance(r, 3) {
			e := &common.RateLimitDescriptor_Entry{Key: oneOf(r, keys), Value: oneOf(r, values)}
			var next []*rule
			if len(level) > 0 && !chance(r, 6) {
				known := oneOf(r, level)
				e.Key, next = known.key, known.children
				if known.value != "" && !chance(r, 4) {
					e.Value = strings.TrimSuffix(known.value, "*") + oneOf(r, []string{"", "", "y"})
				}
			}
			x.Entries, level = append(x.Entries, e), next
		}
		if !c.plain {
			vary(r, x)
		}
		in.Descriptors = append(in.Descriptors, x)
	}
	return in
}

// vary gives some descriptors hits or a limit of their own.
func vary(r *rand.Rand, x *common.RateLimitDescriptor) {
	if chance(r, 5) {
		x.HitsAddend = wrapperspb.UInt64(uint64(r.IntN(4)))
		x.IsNegativeHits = chance(r, 8)
	}
	if chance(r, 30) {
		x.HitsAddend = wrapperspb.UInt64(1_000_001)
	}
	if chance(r, 60) {
		units := []typev3.RateLimitUnit{typev3.RateLimitUnit_SECOND, typev3.RateLimitUnit_MINUTE, typev3.RateLimitUnit_HOUR, typev3.RateLimitUnit_DAY}
		x.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: uint32(r.IntN(5)), Unit: oneOf(r, units)}
	}
}

// files are the configuration as YAML, a file for each domain.
func (c *testCase) files() []string {
	var out []string
	for _, d := range c.domains {
		var b strings.Builder
		fmt.Fprintf(&b, "domain: %s\ndescriptors:\n", d.name)
		for _, x := range d.children {
			x.write(&b, "  ")
		}
		out = append(out, b.String())
	}
	return out
}

func (x *rule) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s- key: %s\n", indent, x.key)
	indent += "  "
	if x.value != "" {
		fmt.Fprintf(b, "%svalue: %q\n", indent, x.value)
	}
	for name, set := range map[string]bool{
		"shadow_mode": x.shadow, "quota_mode": x.quota, "share_threshold": x.share, "detailed_metric": x.detailed,
	} {
		if set {
			fmt.Fprintf(b, "%s%s: true\n", indent, name)
		}
	}
	if x.rate != nil {
		fmt.Fprintf(b, "%srate_limit:\n", indent)
		x.rate.write(b, indent+"  ")
	}
	if len(x.children) > 0 {
		fmt.Fprintf(b, "%sdescriptors:\n", indent)
		for _, y := range x.children {
			y.write(b, indent+"  ")
		}
	}
}

func (l *rate) write(b *strings.Builder, indent string) {
	if l.unlimited {
		fmt.Fprintf(b, "%sunlimited: true\n", indent)
	} else {
		fmt.Fprintf(b, "%sunit: %s\n%srequests_per_unit: %d\n", indent, l.unit, indent, l.amount)
	}
	if l.name != "" {
		fmt.Fprintf(b, "%sname: %s\n", indent, l.name)
	}
	if l.replaces != "" {
		fmt.Fprintf(b, "%sreplaces: [{name: %s}]\n", indent, l.replaces)
	}
}

// units are the words of configurations for the windows that Envoy knows.
var units = map[string]struct {
	unit   rls.RateLimitResponse_RateLimit_Unit
	window time.Duration
}{
	"SECOND": {rls.RateLimitResponse_RateLimit_SECOND, time.Second},
	"MINUTE": {rls.RateLimitResponse_RateLimit_MINUTE, time.Minute},
	"HOUR":   {rls.RateLimitResponse_RateLimit_HOUR, time.Hour},
	"DAY":    {rls.RateLimitResponse_RateLimit_DAY, 24 * time.Hour},
	"WEEK":   {rls.RateLimitResponse_RateLimit_WEEK, 7 * 24 * time.Hour},
	"MONTH":  {rls.RateLimitResponse_RateLimit_MONTH, 30 * 24 * time.Hour},
	"YEAR":   {rls.RateLimitResponse_RateLimit_YEAR, 365 * 24 * time.Hour},
}

package main

import (
	"fmt"
	"math"
	"strconv"
)

// Kind is a kind of traffic.
type Kind string

// The kinds of traffic. Fill is no measurement: it touches every key once.
const (
	Uniform Kind = "uniform" // all keys alike, admitted
	Zipf    Kind = "zipf"    // key i with weight (i+1)^-1.1, admitted
	Hot     Kind = "hot"     // one key, admitted
	Abusive Kind = "abusive" // 95 % to callers who have spent everything
	Mixed   Kind = "mixed"   // 10 % to such, the others uniform
	Fill    Kind = "fill"
)

// zipfPower is the exponent of Zipf.
const zipfPower = 1.1

// abusers is how many keys have spent everything.
const abusers = 1000

// Ask is one request: which key, and whether it is one of those that have spent
// everything.
type Ask struct {
	Key   uint64
	Spent bool
}

// name is the key as every system is given it.
func (a Ask) name() string {
	if a.Spent {
		return "spent:" + strconv.FormatUint(1_000_000_000+a.Key, 10)
	}
	return "user:" + strconv.FormatUint(1_000_000_000+a.Key, 10)
}

// Traffic tells the request at each position of a load. It has no state that changes:
// all callers share it.
type Traffic struct {
	kind  Kind
	keys  uint64
	seed  uint64
	alias *alias // of Zipf
}

// newTraffic makes traffic over so many keys. Different seeds give different draws.
func newTraffic(kind Kind, keys int, seed uint64) (*Traffic, error) {
	t := &Traffic{kind: kind, keys: uint64(keys), seed: seed}
	switch kind {
	case Zipf:
		t.alias = newAlias(keys, func(i int) float64 { return math.Pow(float64(i+1), -zipfPower) })
	case Uniform, Hot, Abusive, Mixed, Fill:
	default:
		return nil, fmt.Errorf("no kind of traffic is called %q", kind)
	}
	return t, nil
}

// filling is how many requests touch each key once.
func filling(keys int) int64 { return int64(keys) + abusers }

// share is the part of requests that must be admitted.
func (k Kind) share() float64 {
	switch k {
	case Abusive:
		return 0.05
	case Mixed:
		return 0.90
	}
	return 1
}

// at is the request at position i.
func (t *Traffic) at(i int64) Ask {
	if t.kind == Fill {
		if n := uint64(i); n >= t.keys {
			return Ask{Key: n - t.keys, Spent: true}
		}
		return Ask{Key: uint64(i)}
	}
	r := mix(t.seed ^ mix(uint64(i)))
	if denied := 1 - t.kind.share(); denied > 0 {
		if float64(mix(r)>>11)/(1<<53) < denied {
			return Ask{Key: r % abusers, Spent: true}
		}
	}
	switch t.kind {
	case Hot:
		return Ask{}
	case Zipf:
		return Ask{Key: t.alias.draw(r)}
	}
	return Ask{Key: r % t.keys}
}

// mix is the finisher of splitmix64: near numbers become unrelated ones.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

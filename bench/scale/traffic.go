package main

import (
	"context"
	"strconv"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/client"
)

// spenders is how many keys have nothing left.
const spenders = 1000

// wide is the request on one of the keys that never run dry.
func wide(key uint64) client.Request {
	return client.Request{Tenant: "user:" + strconv.FormatUint(1_000_000_000+key, 10), Plan: "wide"}
}

// spent is the request on one that has nothing left after the first.
func spent(key uint64) client.Request {
	return client.Request{Tenant: "spent:" + strconv.FormatUint(1_000_000_000+key, 10), Plan: "spent"}
}

// uniform draws from so many keys; different seeds give different draws. denied is the
// share of requests that goes to spenders.
func uniform(keys int, denied float64, seed uint64) func(i int64) client.Request {
	return func(i int64) client.Request {
		r := mix(seed ^ mix(uint64(i)))
		if denied > 0 && float64(mix(r)>>11)/(1<<53) < denied {
			return spent(r % spenders)
		}
		return wide(r % uint64(keys))
	}
}

// heavy draws from so many keys, each with eight limits.
func heavy(keys int, seed uint64) func(i int64) client.Request {
	return func(i int64) client.Request {
		r := wide(mix(seed^mix(uint64(i))) % uint64(keys))
		r.Plan = "heavy"
		return r
	}
}

// mix is the finisher of splitmix64: near numbers become unrelated ones.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// target is the cluster, asked by its own client.
func (c *cluster) target(request func(i int64) client.Request) load.Target {
	return load.Cluster(c.client, request)
}

// fill touches keys from … to-1 once each, and with spenders all of these too.
func (c *cluster) fill(ctx context.Context, from, to int, withSpenders bool) error {
	n := to - from
	request := func(i int64) client.Request {
		if i >= int64(n) {
			return spent(uint64(i) - uint64(n))
		}
		return wide(uint64(from) + uint64(i))
	}
	requests := int64(n)
	if withSpenders {
		requests += spenders
	}
	_, err := c.good(ctx, c.target(request), load.Config{Requests: requests, Concurrency: 16, Batch: 500}, "")
	return err
}

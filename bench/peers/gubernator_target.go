//go:build !nogubernator

package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gubernator-io/gubernator/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ringlimit/ringlimit/bench/load"
)

// guberTarget asks the daemons in turn, each caller always the same one: the client
// library knows no owners, daemons forward.
type guberTarget struct {
	clients  []gubernator.V1Client
	callers  atomic.Int64
	behavior gubernator.Behavior
	traffic  *Traffic
}

// dialDaemon is gubernator.DialV1Server without its tracing, which costs.
func dialDaemon(addr string) (gubernator.V1Client, func(), error) {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	return gubernator.NewV1Client(conn), func() { _ = conn.Close() }, nil
}

// dialGubernator connects to all daemons.
func dialGubernator(j *Job, t *Traffic) (load.Target, func(), error) {
	g := &guberTarget{traffic: t}
	if j.Tuning.NoBatching {
		g.behavior = gubernator.Behavior_NO_BATCHING
	}
	var open []func()
	closeAll := func() {
		for _, c := range open {
			c()
		}
	}
	for _, addr := range j.Addrs {
		c, closed, err := dialDaemon(addr)
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		open = append(open, closed)
		g.clients = append(g.clients, c)
	}
	return g, closeAll, nil
}

func (g *guberTarget) Caller() load.Caller {
	n := int(g.callers.Add(1))
	return &guberCaller{guberTarget: g, client: g.clients[n%len(g.clients)]}
}

type guberCaller struct {
	*guberTarget
	client gubernator.V1Client
}

// day is the window of both policies, in ms.
const day = 24 * 3600 * gubernator.Second

// request is one decision: a bucket of this kind is filled anew each window.
func (g *guberTarget) request(a Ask) *gubernator.RateLimitReq {
	r := &gubernator.RateLimitReq{
		Name: "wide", UniqueKey: a.name(), Hits: 1, Limit: 1_000_000_000, Duration: day,
		Algorithm: gubernator.Algorithm_TOKEN_BUCKET, Behavior: g.behavior,
	}
	if a.Spent {
		r.Name, r.Limit = "spent", 1
	}
	return r
}

func (c *guberCaller) Ask(ctx context.Context, from, to int64, answers []load.Answer) []load.Answer {
	req := &gubernator.GetRateLimitsReq{Requests: make([]*gubernator.RateLimitReq, 0, to-from)}
	for i := from; i < to; i++ {
		req.Requests = append(req.Requests, c.request(c.traffic.at(i)))
	}
	resp, err := c.client.GetRateLimits(ctx, req)
	if err == nil && len(resp.GetResponses()) != len(req.Requests) {
		err = fmt.Errorf("%d answers to %d requests", len(resp.GetResponses()), len(req.Requests))
	}
	if err != nil {
		for range req.Requests {
			answers = append(answers, load.Answer{Err: err})
		}
		return answers
	}
	for _, r := range resp.GetResponses() {
		a := load.Answer{Admitted: r.GetStatus() == gubernator.Status_UNDER_LIMIT}
		if r.GetError() != "" {
			a.Err = errors.New(r.GetError())
		}
		answers = append(answers, a)
	}
	return answers
}

package main

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"github.com/ringlimit/ringlimit/bench/load"
)

//go:embed bucket.lua
var bucketScript string

// What the script is given for buckets of policies.yaml: burst, tokens a window,
// window in µs, cost.
var (
	wideArgs  = []string{"1000000000", "100", "86400000000", "1"}
	spentArgs = []string{"1", "1", "86400000000", "1"}
)

// redisTarget asks by EVALSHA through rueidis, which pipelines all callers.
type redisTarget struct {
	client  rueidis.Client
	sha     string
	wait    bool
	gather  *gatherer // nil: each call waits by itself
	traffic *Traffic
}

// redisOptions are those of the client.
func redisOptions(j *Job) rueidis.ClientOption {
	p := j.Tuning.Redis
	if j.Wait {
		p = j.Tuning.RedisWait
	}
	o := rueidis.ClientOption{
		InitAddress: j.Addrs, ForceSingleClient: true, DisableCache: true, ConnWriteTimeout: callLimit,
		PipelineMultiplex: p.Multiplex, MaxFlushDelay: p.FlushDelay,
	}
	if p.Multiplex == 0 {
		o.PipelineMultiplex = -1 // one connection: 0 would be rueidis' own choice
	}
	return o
}

// dialRedis connects and loads the script.
func dialRedis(j *Job, t *Traffic) (load.Target, func(), error) {
	c, err := rueidis.NewClient(redisOptions(j))
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	sha, err := c.Do(ctx, c.B().ScriptLoad().Script(bucketScript).Build()).ToString()
	if err != nil {
		c.Close()
		return nil, nil, fmt.Errorf("load the script: %w", err)
	}
	r := &redisTarget{client: c, sha: sha, wait: j.Wait, traffic: t}
	if !j.Wait || !j.Tuning.WaitTogether {
		return r, c.Close, nil
	}
	r.gather = newGatherer(c)
	return r, func() { r.gather.close(); c.Close() }, nil
}

func (r *redisTarget) Caller() load.Caller {
	return &redisCaller{redisTarget: r, call: gathered{done: make(chan struct{}, 1)}}
}

type redisCaller struct {
	*redisTarget
	call gathered
}

// eval is the command for one request.
func (r *redisTarget) eval(a Ask) rueidis.Completed {
	args := wideArgs
	if a.Spent {
		args = spentArgs
	}
	return r.client.B().Evalsha().Sha1(r.sha).Numkeys(1).Key(a.name()).Arg(args...).Build()
}

// Ask takes no context that can end: rueidis would watch it in every call. Its own limit
// bounds each call.
func (c *redisCaller) Ask(_ context.Context, from, to int64, answers []load.Answer) []load.Answer {
	if to-from == 1 && !c.wait {
		return append(answers, redisAnswer(c.client.Do(context.Background(), c.eval(c.traffic.at(from)))))
	}
	c.call.commands = c.call.commands[:0]
	for i := from; i < to; i++ {
		c.call.commands = append(c.call.commands, c.eval(c.traffic.at(i)))
	}
	if c.gather != nil {
		c.gather.ask(&c.call)
	} else {
		c.ask()
	}
	for _, r := range c.call.results {
		a := redisAnswer(r)
		if a.Err == nil {
			a.Err = c.call.late
		}
		answers = append(answers, a)
	}
	return answers
}

// ask sends the call by itself, with a WAIT of its own if it is to wait: as any other
// command, which shares a connection with others.
func (c *redisCaller) ask() {
	commands := c.call.commands
	if c.wait {
		commands = append(commands, c.client.B().Arbitrary("WAIT").Args("1", strconv.FormatInt(callLimit.Milliseconds(), 10)).Build())
	}
	results := c.client.DoMulti(context.Background(), commands...)
	c.call.late = nil
	if c.wait {
		c.call.late = waited(results[len(results)-1])
		results = results[:len(results)-1]
	}
	c.call.results = results
}

// redisAnswer reads what the script returned.
func redisAnswer(r rueidis.RedisResult) load.Answer {
	got, err := r.AsIntSlice()
	if err == nil && len(got) != 3 {
		err = fmt.Errorf("the script returned %d numbers, want 3", len(got))
	}
	if err != nil {
		return load.Answer{Err: err}
	}
	return load.Answer{Admitted: got[0] == 1}
}

// waited says whether WAIT met a replica in time.
func waited(r rueidis.RedisResult) error {
	n, err := r.AsInt64()
	if err == nil && n < 1 {
		err = fmt.Errorf("WAIT 1 met %d replicas in time", n)
	}
	return err
}

package main

import (
	"context"
	"sync"

	"github.com/redis/rueidis"
)

// gatherer lets all callers share one WAIT: what they ask while a pipeline is under way
// goes out together in the next, which ends with a WAIT. No Redis client does so by
// itself; without it, WAIT holds up what follows it on a connection.
type gatherer struct {
	client  rueidis.DedicatedClient
	release func()
	ended   sync.WaitGroup // run, from newGatherer until close

	mu      sync.Mutex // guards the rest
	some    *sync.Cond // waiting or closing has changed
	waiting []*gathered
	closing bool
}

// gathered is one call: commands of one caller, and what came of them.
type gathered struct {
	commands rueidis.Commands
	results  []rueidis.RedisResult
	late     error         // no replica had it in time
	done     chan struct{} // of capacity 1: answered
}

// newGatherer takes a connection of its own.
func newGatherer(c rueidis.Client) *gatherer {
	g := &gatherer{}
	g.client, g.release = c.Dedicate()
	g.some = sync.NewCond(&g.mu)
	g.ended.Go(g.run)
	return g
}

// ask sends the commands of c, at least one, and returns when they are answered and a
// replica has them.
func (g *gatherer) ask(c *gathered) {
	g.mu.Lock()
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	g.some.Signal()
	<-c.done
}

// close ends it. Nobody may ask any more.
func (g *gatherer) close() {
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	g.some.Signal()
	g.ended.Wait()
	g.release()
}

// run sends one pipeline after the other.
func (g *gatherer) run() {
	var calls []*gathered
	var commands rueidis.Commands
	for {
		if calls = g.next(calls[:0]); len(calls) == 0 {
			return
		}
		commands = commands[:0]
		for _, c := range calls {
			commands = append(commands, c.commands...)
		}
		commands = append(commands, g.client.B().Wait().Numreplicas(1).Timeout(callLimit.Milliseconds()).Build())
		results := g.client.DoMulti(context.Background(), commands...)
		late := waited(results[len(results)-1])
		for _, c := range calls {
			n := len(c.commands)
			c.results, c.late, results = append(c.results[:0], results[:n]...), late, results[n:]
			c.done <- struct{}{}
		}
	}
}

// next waits for calls and appends all there are; none when it is closing.
func (g *gatherer) next(calls []*gathered) []*gathered {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.waiting) == 0 && !g.closing {
		g.some.Wait()
	}
	calls = append(calls, g.waiting...)
	g.waiting = g.waiting[:0]
	return calls
}

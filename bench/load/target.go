package load

import (
	"context"
	"errors"

	"github.com/ringlimit/ringlimit/client"
)

// Target is what is asked for decisions: a cluster, or what it is compared with.
type Target interface {
	// Caller returns a caller more. It is not called while a load runs.
	Caller() Caller
}

// Caller asks in the name of one caller, from one goroutine at a time.
type Caller interface {
	// Ask asks in one call for the decisions at positions from … to-1 of the load,
	// at least one, and appends the answer to each.
	Ask(ctx context.Context, from, to int64, answers []Answer) []Answer
}

// Answer is what became of one request; with an error there is no decision.
type Answer struct {
	Admitted bool
	Err      error
}

// Spread hands out the callers of several targets in turn, such as those of several
// clients: what one process gathers into few messages many processes do not.
func Spread(targets ...Target) Target { return &spread{targets: targets} }

type spread struct {
	targets []Target
	next    int
}

func (s *spread) Caller() Caller {
	s.next++
	return s.targets[s.next%len(s.targets)].Caller()
}

// Cluster is the target behind a client; request is the decision at a position.
// The client's default timeout bounds each call: a context of its own for each
// would cost more than many a decision.
func Cluster(c *client.Client, request func(i int64) client.Request) Target {
	return cluster{c, request}
}

type cluster struct {
	client  *client.Client
	request func(i int64) client.Request
}

func (c cluster) Caller() Caller { return &clusterCaller{cluster: c} }

type clusterCaller struct {
	cluster
	batch []client.Request
}

func (c *clusterCaller) Ask(ctx context.Context, from, to int64, answers []Answer) []Answer {
	if to-from == 1 {
		d, err := c.client.Decide(ctx, c.request(from))
		return append(answers, answer(&d, err))
	}
	c.batch = c.batch[:0]
	for i := from; i < to; i++ {
		c.batch = append(c.batch, c.request(i))
	}
	results, _ := c.client.DecideBatch(ctx, c.batch) // each result has its own error
	for i := range results {
		answers = append(answers, answer(&results[i].Decision, results[i].Err))
	}
	return answers
}

// errDegraded stands for an answer that no bucket gave.
var errDegraded = errors.New("decided by a policy's failure mode: the cap on buckets is reached")

func answer(d *client.Decision, err error) Answer {
	if err == nil && d.Degraded {
		err = errDegraded
	}
	return Answer{Admitted: d.Allowed, Err: err}
}

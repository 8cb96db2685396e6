package client

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"
)

// A node whose stream cannot be opened, or does not live for steadyTime, three times
// in a row is left alone for a moment: its breaker is open. Then one attempt says
// whether it is well. The moment is short, because what comes back is to be used
// within a second.
const (
	steadyTime   = time.Second
	breakerTrips = 3
	breakerOpen  = 250 * time.Millisecond
)

func newBreaker(addr string) *gobreaker.TwoStepCircuitBreaker[struct{}] {
	return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Name: addr, Timeout: breakerOpen,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= breakerTrips },
	})
}

// dialer connects to n, and notes how that ends.
func (n *node) dialer(dial func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := dial(ctx, addr)
		n.client.dialed(n, err)
		return conn, err
	}
}

// dialTCP is how a client connects without WithDialer.
func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

// dialed notes whether a node refuses connections. One that does not say anything
// may be slow, or the network; one that accepts may yet answer.
func (c *Client) dialed(n *node, err error) {
	var timeout net.Error
	silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.As(err, &timeout) && timeout.Timeout()
	c.mu.Lock()
	defer c.mu.Unlock()
	n.refuses = err != nil && !silent
	c.judgeReach()
}

// judgeReach finds whether every node refuses connections: then no answer will come,
// and nobody waits for one. mu is held.
func (c *Client) judgeReach() {
	all := len(c.order) > 0 && !slices.ContainsFunc(c.order, func(n *node) bool { return !n.refuses || n.isUp() })
	if all == c.unreached.Load() {
		return
	}
	since := int64(0)
	if all {
		since = max(1, c.now())
		c.options.logger.Warn("ringlimit: every node refuses connections", "nodes", len(c.order), "decided_here", c.rules.Load() != nil)
	}
	c.unreachedSince.Store(since)
	c.unreached.Store(all)
	c.wakeClock() // those that wait are decided here
}

package nemesis

import (
	"context"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// pauses are how long a node is stopped at a time.
var pauses = []time.Duration{200 * time.Millisecond, time.Second, 5 * time.Second, 30 * time.Second}

// pause stops the node that leads most groups, and lets it run on, again and again.
type pause struct {
	whole
	loop loop
	node *fleet.Node
}

func (p *pause) Start(ctx context.Context) (string, error) {
	nodes, err := p.w.claim(1, p.w.leading(ctx))
	if err != nil {
		return "", err
	}
	p.node = nodes[0]
	long := pauses[p.w.intn(len(pauses))]
	p.loop.begin(ctx, func(ctx context.Context) error {
		for {
			p.w.count("pauses")
			if err := p.node.Pause(); err != nil {
				return err
			}
			wait(ctx, p.w.between(long/2, long))
			if err := p.node.Resume(); err != nil {
				return err
			}
			if !wait(ctx, p.w.between(long/2, 2*time.Second+long/2)) {
				return nil
			}
		}
	})
	return fmt.Sprintf("stopped %s for up to %v, again and again", p.node.Name, long), nil
}

func (p *pause) Stop(context.Context) error {
	err := p.loop.end()
	if p.node != nil {
		p.w.release(p.node)
	}
	return err
}

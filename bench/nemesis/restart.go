package nemesis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// stopIn is serve's default for --drain-timeout, and a margin.
const stopIn = 35 * time.Second

// restart ends one node by SIGTERM, which hands over what it leads, and starts it
// again, over and over.
type restart struct {
	whole
	loop loop
	node *fleet.Node
}

func (r *restart) Start(ctx context.Context) (string, error) {
	nodes, err := r.w.claim(1, r.w.leading(ctx))
	if err != nil {
		return "", err
	}
	if !r.w.mayEmpty(nodes[0]) {
		r.w.release(nodes...)
		return "", ErrNotNow
	}
	r.node = nodes[0]
	r.loop.begin(ctx, func(ctx context.Context) error {
		for {
			r.w.count("drains")
			if err := r.node.Stop(stopIn); err != nil {
				return errors.Join(err, r.node.Kill())
			}
			if err := r.node.Start(); err != nil {
				return err
			}
			if r.w.Whole(ctx, HealIn) != nil || !wait(ctx, time.Second) {
				return nil
			}
			if !r.w.mayEmpty(r.node) {
				return nil
			}
		}
	})
	return fmt.Sprintf("SIGTERM and restart of %s", r.node.Name), nil
}

func (r *restart) Stop(context.Context) error {
	err := r.loop.end()
	if r.node == nil {
		return err
	}
	defer r.w.release(r.node)
	if r.node.PID() == 0 {
		return errors.Join(err, r.node.Start())
	}
	return err
}

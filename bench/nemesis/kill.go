package nemesis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// order is whom a kill meets next, and how long it stays down.
type order func(ctx context.Context, w *World, n int) (name string, down time.Duration)

func anyNode(_ context.Context, w *World, _ int) (string, time.Duration) {
	return "", w.between(0, 10*time.Second)
}

func mostLeading(ctx context.Context, w *World, _ int) (string, time.Duration) {
	return w.leading(ctx), w.between(0, 3*time.Second)
}

func inTurn(_ context.Context, w *World, n int) (string, time.Duration) {
	nodes := w.Fleet.List()
	return nodes[n%len(nodes)].Name, 0
}

// kill kills one node after the other, each once the cluster is whole again.
type kill struct {
	whole
	next order
	loop loop
	down *fleet.Node // now; the loop's, and Stop's once that has ended
}

func killer(next order) func(*World) Nemesis {
	return func(w *World) Nemesis { return &kill{whole: whole{w}, next: next} }
}

func (k *kill) Start(ctx context.Context) (string, error) {
	name, down := k.next(ctx, k.w, 0)
	if err := k.kill(name); err != nil {
		return "", err
	}
	what := fmt.Sprintf("killed %s, back after %v, then others", k.down.Name, down.Round(time.Millisecond))
	k.loop.begin(ctx, func(ctx context.Context) error {
		for n := 1; ; n++ {
			if !wait(ctx, down) {
				return nil
			}
			if err := k.revive(); err != nil {
				return err
			}
			if k.w.Whole(ctx, HealIn) != nil && ctx.Err() == nil {
				continue // with other faults about it cannot be: then this one is enough
			}
			if !wait(ctx, k.w.between(0, 2*time.Second)) {
				return nil
			}
			name, down = k.next(ctx, k.w, n)
			if err := k.kill(name); err != nil && !errors.Is(err, ErrNotNow) {
				return err
			}
		}
	})
	return what, nil
}

// kill takes a node down.
func (k *kill) kill(name string) error {
	nodes, err := k.w.claim(1, name)
	if err != nil {
		return err
	}
	if !k.w.mayEmpty(nodes[0]) {
		k.w.release(nodes...)
		return ErrNotNow
	}
	k.down = nodes[0]
	k.w.count("kills")
	return k.down.Kill()
}

// revive starts it again.
func (k *kill) revive() error {
	if k.down == nil {
		return nil
	}
	n := k.down
	k.down = nil
	defer k.w.release(n)
	return n.Start()
}

func (k *kill) Stop(context.Context) error { return errors.Join(k.loop.end(), k.revive()) }

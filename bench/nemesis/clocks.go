package nemesis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// offset starts a node anew with clocks that are ahead by hours or days. Elapsed time
// is the same, so no decision may change.
type offset struct {
	whole
	node *fleet.Node
}

func (o *offset) Start(ctx context.Context) (string, error) {
	nodes, err := o.w.claim(1, o.w.leading(ctx))
	if err != nil {
		return "", err
	}
	if !o.w.mayEmpty(nodes[0]) {
		o.w.release(nodes...)
		return "", ErrNotNow
	}
	o.node = nodes[0]
	ahead := o.w.between(time.Hour, 48*time.Hour)
	o.w.count("clock offsets")
	return fmt.Sprintf("%s started anew, its clocks %v ahead", o.node.Name, ahead.Round(time.Minute)),
		o.again(fleet.AheadBy(ahead)...)
}

func (o *offset) again(around ...string) error {
	o.node.Around(around...)
	return errors.Join(o.node.Kill(), o.node.Start())
}

// Stop starts it anew on the machine's own clock, once nothing can be lost by it.
func (o *offset) Stop(ctx context.Context) error {
	if o.node == nil {
		return nil
	}
	defer o.w.release(o.node)
	for {
		if err := o.w.Whole(ctx, HealIn); err != nil {
			o.node.Around()
			return nil // Healed will say so
		}
		if o.w.mayEmpty(o.node) {
			return o.again()
		}
	}
}

// bent is a node whose group time goes wrong.
type bent struct {
	node *fleet.Node
}

// bend chooses a node and sets its clock.
func (b *bent) bend(ctx context.Context, w *World, rate float64, jump time.Duration) error {
	nodes, err := w.claim(1, w.leading(ctx))
	if err != nil {
		return err
	}
	b.node = nodes[0]
	w.count("bent clocks")
	return b.node.SetClock(rate, jump)
}

func (b *bent) right(w *World) error {
	if b.node == nil {
		return nil
	}
	w.release(b.node)
	return b.node.SetClock(1, 0)
}

// rate makes group time of a leader fast or slow.
type rate struct {
	whole
	bent
}

func (r *rate) Start(ctx context.Context) (string, error) {
	rates := []float64{1 - FastestClock, 0.99, 1.01, 1 + FastestClock}
	f := rates[r.w.intn(len(rates))]
	if err := r.bend(ctx, r.w, f, 0); err != nil {
		return "", err
	}
	return fmt.Sprintf("group time of %s at %g times its rate", r.node.Name, f), nil
}

func (r *rate) Stop(context.Context) error { return r.right(r.w) }

// jump sets group time of a leader ahead.
type jump struct {
	whole
	bent
}

func (j *jump) Start(ctx context.Context) (string, error) {
	if err := j.bend(ctx, j.w, 1, JumpAhead); err != nil {
		return "", err
	}
	return fmt.Sprintf("group time of %s ahead by %v", j.node.Name, JumpAhead), nil
}

func (j *jump) Stop(context.Context) error { return j.right(j.w) }

// freeze lets group time of a leader stand still for a while.
type freeze struct {
	whole
	bent
	loop loop
}

func (f *freeze) Start(ctx context.Context) (string, error) {
	if err := f.bend(ctx, f.w, 0, 0); err != nil {
		return "", err
	}
	f.loop.begin(ctx, func(ctx context.Context) error {
		wait(ctx, FrozenFor)
		return f.node.SetClock(1, 0)
	})
	return fmt.Sprintf("group time of %s stands still for %v", f.node.Name, FrozenFor), nil
}

func (f *freeze) Stop(context.Context) error { return errors.Join(f.loop.end(), f.right(f.w)) }

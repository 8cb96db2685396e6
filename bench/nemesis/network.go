package nemesis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// eachLink calls f for both directions of every link.
func (w *World) eachLink(f func(from, to string) error) (failed error) {
	for _, a := range w.Fleet.List() {
		for _, b := range w.Fleet.List() {
			if a != b {
				failed = errors.Join(failed, f(a.Name, b.Name))
			}
		}
	}
	return failed
}

// loss loses a share of all packets between nodes, or of one node's.
type loss struct {
	whole
	only string // empty: all
}

func (l *loss) Start(context.Context) (string, error) {
	percent := 1 + l.w.intn(50)
	where := "everywhere"
	if l.w.intn(2) == 0 {
		nodes := l.w.Fleet.List()
		l.only = nodes[l.w.intn(len(nodes))].Name
		where = "around " + l.only
	}
	l.w.count("losses")
	return fmt.Sprintf("%d %% of packets lost %s", percent, where), l.set(percent)
}

func (l *loss) set(percent int) error {
	return l.w.eachLink(func(from, to string) error {
		if l.only != "" && from != l.only && to != l.only {
			return nil
		}
		return l.w.Fleet.Loss(from, to, percent)
	})
}

func (l *loss) Stop(context.Context) error { return l.set(0) }

// flap takes the link of one node down and up; callers lose it too.
type flap struct {
	whole
	loop loop
	node *fleet.Node
}

func (f *flap) Start(ctx context.Context) (string, error) {
	nodes, err := f.w.claim(1, "")
	if err != nil {
		return "", err
	}
	f.node = nodes[0]
	f.loop.begin(ctx, func(ctx context.Context) error {
		for up := false; ; up = !up {
			if err := f.w.Fleet.Link(f.node.Name, up); err != nil {
				return err
			}
			if !up {
				f.w.count("flaps")
			}
			if !wait(ctx, f.w.between(300*time.Millisecond, 3*time.Second)) {
				return nil
			}
		}
	})
	return fmt.Sprintf("the link of %s down and up", f.node.Name), nil
}

func (f *flap) Stop(context.Context) error {
	err := f.loop.end()
	if f.node == nil {
		return err
	}
	f.w.release(f.node)
	return errors.Join(err, f.w.Fleet.Link(f.node.Name, true))
}

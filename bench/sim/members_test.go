package sim

import (
	"context"
	"errors"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// begin starts the first nodes of the plan.
func (w *world) begin() {
	for i := range w.plan.nodes {
		time.Sleep(w.plan.after[i])
		w.launch(i, true)
	}
}

// grow lets the later nodes of the plan join.
func (w *world) grow() {
	for i := range w.plan.later {
		time.Sleep(w.plan.after[w.plan.nodes+i])
		w.launch(w.plan.nodes+i, false)
	}
}

// shrink drains the last node; its process then ends by itself.
func (w *world) shrink() {
	w.part("drained", func(ctx context.Context, x *node, name string) error {
		_, err := x.Drain(ctx, &pb.DrainRequest{Node: name})
		return err
	})
}

// bury kills the last node for good, and has it removed.
func (w *world) bury() {
	name := nodeName(w.plan.nodes - 1)
	w.mu.Lock()
	w.gone[name] = true
	w.mu.Unlock()
	w.kill(name)
	w.part("removed", func(ctx context.Context, x *node, name string) error {
		_, err := x.Remove(ctx, &pb.RemoveRequest{Node: name})
		return err
	})
}

// part asks other nodes to part with the last one until they do not know it any more.
func (w *world) part(how string, ask func(context.Context, *node, string) error) {
	name := nodeName(w.plan.nodes - 1)
	w.trace.note("node %s is to be %s", name, how)
	took, err := w.eventually(2*time.Minute, func() error {
		for _, other := range w.running() {
			x := w.node(other)
			if x == nil || other == name {
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			err := ask(ctx, x, name)
			cancel()
			if errors.Is(err, fault.NotFound) {
				return nil
			}
			if err == nil {
				err = errors.New("it is still there")
			}
			return err
		}
		return errors.New("no other node runs")
	})
	w.trace.note("node %s: %s after %v: %v", name, how, took, err)
}

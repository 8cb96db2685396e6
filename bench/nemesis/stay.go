package nemesis

import (
	"context"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// dead kills the node that leads most groups, and leaves it so.
type dead struct {
	whole
	node *fleet.Node
}

func (d *dead) Start(ctx context.Context) (string, error) {
	nodes, err := d.w.claim(1, d.w.leading(ctx))
	if err != nil {
		return "", err
	}
	if !d.w.mayEmpty(nodes[0]) {
		d.w.release(nodes...)
		return "", ErrNotNow
	}
	d.node = nodes[0]
	d.w.count("kills")
	return "killed " + d.node.Name, d.node.Kill()
}

func (d *dead) Stop(context.Context) error {
	if d.node == nil {
		return nil
	}
	d.w.release(d.node)
	return d.node.Start()
}

// stopped stops that node where it stands, and leaves it so.
type stopped struct {
	whole
	node *fleet.Node
}

func (s *stopped) Start(ctx context.Context) (string, error) {
	nodes, err := s.w.claim(1, s.w.leading(ctx))
	if err != nil {
		return "", err
	}
	s.node = nodes[0]
	s.w.count("pauses")
	return "stopped " + s.node.Name, s.node.Pause()
}

func (s *stopped) Stop(context.Context) error {
	if s.node == nil {
		return nil
	}
	s.w.release(s.node)
	return s.node.Resume()
}

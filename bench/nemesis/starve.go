package nemesis

import (
	"context"
	"fmt"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// starve leaves a node a small share of a processor.
type starve struct {
	whole
	node *fleet.Node
	lift func() error
}

func (s *starve) Start(ctx context.Context) (string, error) {
	nodes, err := s.w.claim(1, s.w.leading(ctx))
	if err != nil {
		return "", err
	}
	s.node = nodes[0]
	percent := 5 + s.w.intn(16)
	s.w.count("starvations")
	s.lift, err = s.node.Throttle(float64(percent) / 100)
	return fmt.Sprintf("%s with %d %% of a processor", s.node.Name, percent), err
}

func (s *starve) Stop(context.Context) error {
	if s.node == nil {
		return nil
	}
	s.w.release(s.node)
	if s.lift == nil {
		return nil
	}
	return s.lift()
}

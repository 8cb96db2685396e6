package nemesis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// wipe kills so many nodes within 50 ms that groups lose their majority for good, and
// starts them again at the end, from their directories. It is never beside others.
type wipe struct {
	whole
	nodes int // fewer than 1: all
	down  []*fleet.Node
}

func (l *wipe) Start(context.Context) (string, error) {
	n := l.nodes
	if n < 1 {
		n = len(l.w.Fleet.List())
	}
	nodes, err := l.w.claim(n, "")
	if err != nil {
		return "", err
	}
	l.w.wipe(nodes)
	begun := time.Now()
	for _, node := range nodes {
		if err := node.KillNow(); err != nil {
			return "", err
		}
		l.w.count("kills")
	}
	apart := time.Since(begun)
	for _, node := range nodes {
		if err := node.Kill(); err != nil {
			return "", err
		}
		l.down = append(l.down, node)
	}
	return fmt.Sprintf("killed %d nodes within %v", n, apart.Round(time.Microsecond)), nil
}

func (l *wipe) Stop(context.Context) error {
	var failed error
	for _, n := range l.down {
		failed = errors.Join(failed, n.Start())
	}
	l.w.release(l.down...)
	return failed
}

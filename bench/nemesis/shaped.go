package nemesis

import (
	"context"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// shape gives all links one shape.
func (w *World) shape(s fleet.Shape) error {
	return w.eachLink(func(from, to string) error { return w.Fleet.Shape(from, to, s) })
}

// delay makes all links slow; gossip then comes out of order, and some of it not.
type delay struct{ whole }

func (d *delay) Start(context.Context) (string, error) {
	s := fleet.Shape{Delay: d.w.between(0, 50*time.Millisecond), Jitter: d.w.between(time.Millisecond, 150*time.Millisecond), Lost: 0.05}
	d.w.count("delays")
	return fmt.Sprintf("links slower by %v and up to %v more", s.Delay.Round(time.Millisecond), s.Jitter.Round(time.Millisecond)), d.w.shape(s)
}

func (d *delay) Stop(context.Context) error { return d.w.shape(fleet.Shape{}) }

// duplicate repeats messages of raft and calls between nodes, and gossip.
type duplicate struct{ whole }

func (d *duplicate) Start(context.Context) (string, error) {
	s := fleet.Shape{Twice: 0.3, Again: 0.1, Later: 3 * time.Second}
	d.w.count("duplications")
	return "3 of 10 messages twice, 1 of 10 again up to 3 s later", d.w.shape(s)
}

func (d *duplicate) Stop(context.Context) error { return d.w.shape(fleet.Shape{}) }

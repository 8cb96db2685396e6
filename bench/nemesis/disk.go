package nemesis

import (
	"context"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// diskFull leaves no room on the disk of one node, where its control log is.
type diskFull struct {
	whole
	node *fleet.Node
}

func (d *diskFull) Start(ctx context.Context) (string, error) {
	nodes, err := d.w.claim(1, d.w.leading(ctx))
	if err != nil {
		return "", err
	}
	if !d.w.mayEmpty(nodes[0]) { // a node that cannot write may end itself
		d.w.release(nodes...)
		return "", ErrNotNow
	}
	d.node = nodes[0]
	d.w.count("full disks")
	return "the disk of " + d.node.Name + " full", d.w.Fleet.FillDisk(d.node)
}

// Stop makes room, and starts the node if it has ended for want of it.
func (d *diskFull) Stop(context.Context) error {
	if d.node == nil {
		return nil
	}
	d.w.release(d.node)
	if err := d.w.Fleet.FreeDisk(d.node); err != nil {
		return err
	}
	defer d.w.spared(d.node)
	return d.node.StartIfEnded()
}

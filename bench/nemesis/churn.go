package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

const (
	drainedIn = 90 * time.Second
	removedIn = 30 * time.Second
)

// churn lets a fresh node join, and at the end takes one away again: by drain, or by
// kill and remove.
type churn struct {
	whole
	joined *fleet.Node
}

func (c *churn) Start(context.Context) (string, error) {
	n, err := c.w.Fleet.Add()
	if err != nil {
		return "", err
	}
	c.joined = n
	c.w.count("joins")
	return fmt.Sprintf("%s joins, and one leaves at the end", n.Name), nil
}

// Stop takes a node away once the new one is in: the new one, or the one that leads
// most groups.
func (c *churn) Stop(ctx context.Context) error {
	if c.joined == nil {
		return nil
	}
	if err := c.w.Whole(ctx, HealIn); err != nil {
		return err
	}
	preferred := c.joined.Name
	if c.w.intn(2) == 0 {
		preferred = c.w.leading(ctx)
	}
	nodes, err := c.w.claim(1, preferred)
	if err != nil {
		return err
	}
	defer c.w.release(nodes...)
	if c.w.intn(2) == 0 && c.w.mayEmpty(nodes[0]) {
		return c.remove(ctx, nodes[0])
	}
	return c.drain(ctx, nodes[0])
}

func (c *churn) drain(ctx context.Context, n *fleet.Node) error {
	ctx, cancel := context.WithTimeout(ctx, drainedIn)
	defer cancel()
	c.w.count("drained nodes")
	if err := c.told(ctx, "drain", n, func() bool { return n.Ended(time.Millisecond) == nil }); err != nil {
		return err
	}
	if n.PID() != 0 {
		if err := n.Ended(stopIn); err != nil {
			return errors.Join(err, n.Kill())
		}
	}
	c.w.Fleet.Forget(n)
	return nil
}

// forgot says whether the cluster knows a node no more.
func (w *World) forgot(ctx context.Context, name string) bool {
	st, err := w.Fleet.Status(ctx)
	return err == nil && !slices.ContainsFunc(st.GetNodes(), func(n *pb.NodeStatus) bool { return n.GetName() == name })
}

// told gives a command about a node until it is obeyed, or done says that it was: its outcome
// may be unknown when the control group changes its leader.
func (c *churn) told(ctx context.Context, command string, n *fleet.Node, done func() bool) error {
	for {
		code, out, err := c.w.Fleet.Command(ctx, command, n.Name)
		if err == nil && code == 0 || done() {
			return nil
		}
		if !wait(ctx, 300*time.Millisecond) {
			return errors.Join(fmt.Errorf("rlnode %s %s: exit code %d: %.300s", command, n.Name, code, out), err)
		}
	}
}

// remove is refused while links to the node may still be up.
func (c *churn) remove(ctx context.Context, n *fleet.Node) error {
	ctx, cancel := context.WithTimeout(ctx, removedIn)
	defer cancel()
	c.w.count("removed nodes")
	if err := n.Kill(); err != nil {
		return err
	}
	if err := c.told(ctx, "remove", n, func() bool { return c.w.forgot(ctx, n.Name) }); err != nil {
		return err
	}
	c.w.Fleet.Forget(n)
	return nil
}

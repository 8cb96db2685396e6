package main

import (
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/control"
)

// cluster is a cluster of which only the control state is there: what groups should
// report is reported at once.
type cluster struct {
	m        *control.Machine
	index    uint64
	commands int
	bytes    int
	replicas int // made by steps
	moves    int // slots that changed their group
	plans    int
	longest  time.Duration // of one Plan
	planning time.Duration // of all
}

func (c *cluster) apply(cmd control.Command) error {
	c.index++
	data := control.Encode(cmd)
	c.commands++
	c.bytes += len(data)
	r, err := c.m.Apply(c.index, data)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return fmt.Errorf("%T: %w", cmd, err)
	}
	return nil
}

func (c *cluster) join(i int) error {
	n := control.Node{Name: name(i), Directory: name(i), Incarnation: name(i), FormatMax: control.FormatMax}
	n.GRPC, n.Peer = fmt.Sprintf("10.0.%d.%d:7600", i/256, i%256), fmt.Sprintf("10.0.%d.%d:7601", i/256, i%256)
	n.Gossip, n.HTTP = fmt.Sprintf("10.0.%d.%d:7602", i/256, i%256), fmt.Sprintf("10.0.%d.%d:7700", i/256, i%256)
	return c.apply(control.Register{Node: n})
}

// settle plans and reports until nothing is left to do.
func (c *cluster) settle() error {
	for range 100_000 {
		s := c.m.State()
		begun := time.Now()
		commands := control.Plan(s, control.Look{Quiet: control.Hysteresis, Steady: control.Hysteresis})
		took := time.Since(begun)
		c.plans++
		c.planning += took
		c.longest = max(c.longest, took)
		for _, cmd := range commands {
			if err := c.apply(cmd); err != nil {
				return err
			}
		}
		if err := c.report(); err != nil {
			return err
		}
		if c.m.State() == s {
			return nil
		}
	}
	return fmt.Errorf("it never settles: %d moves are open", len(c.m.State().Moves))
}

// report says for all groups that what was to be done is done.
func (c *cluster) report() error {
	s := c.m.State()
	for _, g := range s.Groups {
		for _, cmd := range c.reports(s, g) {
			if err := c.apply(cmd); err != nil {
				return err
			}
		}
	}
	return nil
}

// reports is what the leader of a group says at a state.
func (c *cluster) reports(s *control.State, g control.Group) (out []control.Command) {
	if !g.Formed {
		out = append(out, control.Form{Group: g.ID, Epoch: g.Epoch})
	}
	for _, r := range g.Replicas {
		switch {
		case r.Role == control.Joining && !s.Gone(r):
			c.replicas++
			out = append(out, control.Promoted{Group: g.ID, Epoch: g.Epoch, Serial: r.Serial})
		case r.Role == control.Leaving:
			out = append(out, control.Dropped{Group: g.ID, Epoch: g.Epoch, Serial: r.Serial})
		}
	}
	var flip, settled []control.MoveID
	for _, m := range s.MovesOf(g.ID) {
		switch {
		case m.From == g.ID && m.Phase == control.Copying:
			flip = append(flip, m.ID())
		case m.To == g.ID && m.Phase != control.Copying && !m.ToSettled,
			m.From == g.ID && (m.Phase == control.Cancelled || m.ToSettled) && !m.FromSettled:
			settled = append(settled, m.ID())
		}
	}
	c.moves += len(flip)
	if flip != nil {
		out = append(out, control.Flip{Group: g.ID, Epoch: g.Epoch, Moves: flip})
	}
	if settled != nil {
		out = append(out, control.Settled{Group: g.ID, Epoch: g.Epoch, Moves: settled})
	}
	return out
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bench/fleet"
)

// spender is one process of a crowd, as this one sees it.
type spender struct {
	*fleet.Node
	log  *os.File
	rest []byte // of a line that was not written whole when last read
	told []told // answers
	last told   // the newest line
	up   bool   // it has said that it is ready
}

// crowd is all the spenders of one key. One goroutine uses it.
type crowd struct {
	a     *arena
	flags spenderFlags
	began time.Time
	going bool
	live  []*spender
	gone  []*spender // killed, or ended
}

// lookEvery is how often a crowd is looked at while something is waited for: leases are
// granted and spent within tens of milliseconds.
const lookEvery = 2 * time.Millisecond

// gather starts n spenders of a fresh key; they rest.
func (a *arena) gather(ctx context.Context, plan string, n int) (*crowd, error) {
	now := time.Now()
	c := &crowd{a: a, began: now, flags: spenderFlags{nodes: strings.Join(a.fleet.GRPC(), ","), key: a.fresh(plan), began: now.UnixNano()}}
	return c, c.join(ctx, n)
}

// join starts n more, and waits until they are ready.
func (c *crowd) join(ctx context.Context, n int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for range n {
		name := fmt.Sprintf("spender-%d", len(c.live)+len(c.gone)+1)
		s := new(spender)
		if s.Node, err = fleet.Process(name, filepath.Join(c.a.dir, name), append([]string{self}, c.flags.args()...)...); err != nil {
			return err
		}
		if err := s.Start(); err != nil {
			return err
		}
		c.live = append(c.live, s)
		if s.log, err = os.Open(s.Log()); err != nil {
			return err
		}
	}
	ready, err := c.until(ctx, patience, func() bool {
		for _, s := range c.live {
			if !s.up {
				return false
			}
		}
		return true
	})
	if err == nil && !ready {
		err = fmt.Errorf("spenders are not ready after %v (logs in %s)", patience, c.a.dir)
	}
	if err == nil {
		err = c.order(c.going)
	}
	return err
}

// order makes all spend, or rest.
func (c *crowd) order(going bool) error {
	c.going = going
	s := syscall.SIGUSR2
	if going {
		s = syscall.SIGUSR1
	}
	return c.each(func(n *fleet.Node) error { return n.Signal(s) })
}

func (c *crowd) each(do func(*fleet.Node) error) error {
	for _, s := range c.live {
		if err := do(s.Node); err != nil {
			return err
		}
	}
	return nil
}

// until reads what spenders write until cond holds, or for d.
func (c *crowd) until(ctx context.Context, d time.Duration, cond func() bool) (bool, error) {
	for end := time.Now().Add(d); ; {
		for _, s := range c.live {
			if err := s.read(); err != nil {
				return false, err
			}
		}
		switch {
		case cond():
			return true, nil
		case time.Now().After(end):
			return false, nil
		}
		if err := pause(ctx, lookEvery); err != nil {
			return false, err
		}
	}
}

// goOn lets them be for d.
func (c *crowd) goOn(ctx context.Context, d time.Duration) error {
	_, err := c.until(ctx, d, func() bool { return false })
	return err
}

// kill ends a spender by SIGKILL; what it had written by then counts.
func (c *crowd) kill(s *spender) error {
	if err := s.Kill(); err != nil {
		return err
	}
	return c.leave(s)
}

func (c *crowd) leave(s *spender) error {
	for i, other := range c.live {
		if other == s {
			c.live = append(c.live[:i:i], c.live[i+1:]...)
			break
		}
	}
	c.gone = append(c.gone, s)
	return s.read()
}

// end ends all: by SIGTERM, so that they return what they hold.
func (c *crowd) end() error {
	for len(c.live) > 0 {
		s := c.live[0]
		if err := s.Stop(patience); err != nil {
			return err
		}
		if err := c.leave(s); err != nil {
			return err
		}
	}
	return nil
}

// close kills what still runs.
func (c *crowd) close() {
	for _, s := range c.live {
		_ = s.Resume()
		_ = s.Kill()
	}
	for _, s := range append(c.live, c.gone...) {
		if s.log != nil {
			_ = s.log.Close()
		}
	}
}

// held is what all hold, by what they last said.
func (c *crowd) held() (units int64) {
	for _, s := range c.live {
		units += s.last.Held
	}
	return units
}

// asked is how many leases those that live have asked for.
func (c *crowd) asked() (leases uint64) {
	for _, s := range c.live {
		leases += s.last.Asked
	}
	return leases
}

// ops are all answers.
func (c *crowd) ops() (ops []check.Op) {
	for i, s := range append(c.gone[:len(c.gone):len(c.gone)], c.live...) {
		for k := range s.told {
			ops = append(ops, s.told[k].op(c.flags.key, i))
		}
	}
	return ops
}

// read takes in what a spender has written since it was last called. A line without its
// end is one that a kill cut off, or the next time's.
func (s *spender) read() error {
	more, err := io.ReadAll(s.log)
	if err != nil {
		return fmt.Errorf("what %s writes: %w", s.Name, err)
	}
	s.rest = append(s.rest, more...)
	for {
		line, after, whole := bytes.Cut(s.rest, []byte("\n"))
		if !whole {
			return nil
		}
		var t told
		if err := json.Unmarshal(line, &t); err != nil {
			return fmt.Errorf("%s says %q: %w", s.Name, line, err)
		}
		if s.up {
			s.told = append(s.told, t)
		}
		s.rest, s.last, s.up = after, t, true
	}
}

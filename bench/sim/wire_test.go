package sim

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/internal/simnet"
)

// wire is a node's network that can send requests between nodes twice, the second
// time late. It does so in the direction of the one who dialled.
type wire struct {
	*simnet.Host
	w    *world
	name string
}

// doubling is until when requests are copied, in ns since the start of the bubble.
type doubling struct{ until atomic.Int64 }

// Dial wraps connections to the peer port.
func (x *wire) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c, err := x.Host.Dial(ctx, addr)
	if err != nil || !strings.HasSuffix(addr, ":7601") {
		return c, err
	}
	return &copier{Conn: c, w: x.w, name: x.name + ">" + addr}, nil
}

// copier follows the frames that are written. transport writes whole frames, one
// goroutine at a time; a write that ends amid one is passed on without copies.
type copier struct {
	net.Conn
	w     *world
	name  string
	begun bool // the hello has passed
	link  bool // and opened a link: what follows are frames
	count uint64
	late  []lateCopy
}

// lateCopy goes out after so many more writes.
type lateCopy struct {
	frame []byte
	after int
}

// A hello is two bytes of length, a magic, a version and a purpose, 1 for a link; a
// frame four bytes of length, and its kind.
const (
	helloPurpose = 2 + len("RLPEER") + 1
	frameHead    = 4
)

// copied says whether frames of a kind are requests: heartbeat, append, vote,
// pre-vote, timeout-now, call.
func copied(kind byte) bool { return kind >= 3 && kind <= 7 || kind == 13 }

func (c *copier) Write(b []byte) (int, error) {
	if !c.begun {
		c.begun = true
		c.link = len(b) > helloPurpose && b[helloPurpose] == 1
		return c.Conn.Write(b)
	}
	whole := c.link && c.look(b)
	n, err := c.Conn.Write(b)
	if err != nil || !whole {
		return n, err
	}
	return n, c.again()
}

// look notes what is to be sent again; false if b is no sequence of whole frames.
func (c *copier) look(b []byte) bool {
	active := int64(c.w.now()) < c.w.doubling.until.Load()
	for len(b) > 0 {
		if len(b) < frameHead+1 {
			c.link = false
			return false
		}
		n := frameHead + int(binary.LittleEndian.Uint32(b))
		if n > len(b) {
			c.link = false // the rest comes with the next write: look no further
			return false
		}
		if active && copied(b[frameHead]) {
			c.count++
			if x := c.w.chance(c.name, c.count); x%4 == 0 {
				c.late = append(c.late, lateCopy{bytes.Clone(b[:n]), int(x / 4 % 20)})
			}
		}
		b = b[n:]
	}
	return true
}

// again sends copies whose time has come.
func (c *copier) again() error {
	var keep []lateCopy
	for _, l := range c.late {
		if l.after--; l.after >= 0 {
			keep = append(keep, l)
			continue
		}
		c.w.doubles.Add(1)
		if _, err := c.Conn.Write(l.frame); err != nil {
			return err
		}
	}
	c.late = keep
	return nil
}

// chance is a number that depends on the seed, a name and a count alone.
func (w *world) chance(name string, count uint64) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s/%d", w.plan.seed, name, count)
	return h.Sum64() >> 3
}

func (d *doubling) extend(until time.Duration) {
	for {
		old := d.until.Load()
		if old >= int64(until) || d.until.CompareAndSwap(old, int64(until)) {
			return
		}
	}
}

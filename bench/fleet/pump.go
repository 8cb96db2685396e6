package fleet

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// waiting is how many pieces a pump reads ahead of what it has passed on.
const waiting = 256

// pump carries one direction of one connection through a gate: one goroutine reads
// and decides when each piece is due, another writes. When its source ends it
// closes both, once the gate lets the news through.
type pump struct {
	dst, src *net.TCPConn
	gate     *gate
	split    splitter

	last time.Time // when the newest piece is due: a stream stays in order
}

// timed is a piece and when it is to be passed on.
type timed struct {
	data []byte
	due  time.Time
	copy bool // may come at any time: it follows the one that it copies
}

// run carries until the source or the destination ends, or ctx.
func (p *pump) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ahead := make(chan timed, waiting)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		defer p.dst.Close()
		defer p.src.Close()
		p.write(ctx, ahead)
	})
	p.read(ctx, ahead)
	wg.Wait()
}

// read fills ahead, and closes it when the source has ended.
func (p *pump) read(ctx context.Context, ahead chan<- timed) {
	defer close(ahead)
	for buf := make([]byte, 64<<10); ; {
		n, err := p.src.Read(buf)
		if n > 0 {
			p.gate.writes.Add(1)
		}
		shape := p.gate.shape.Load()
		pieces := p.split.feed(buf[:n], shape != nil && shape.Twice+shape.Again > 0)
		if err != nil {
			pieces = append(pieces, p.split.flush()...)
		}
		for _, piece := range pieces {
			if !p.plan(ctx, ahead, piece, shape) {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = p.dst.SetLinger(0) // pass a reset on as a reset
			}
			return
		}
	}
}

// plan puts a piece and its copies into ahead; false: nobody writes any more.
func (p *pump) plan(ctx context.Context, ahead chan<- timed, piece piece, shape *Shape) bool {
	if p.last = later(p.last, shape.due(time.Now())); !send(ctx, ahead, timed{data: piece.data, due: p.last}) {
		return false
	}
	if piece.repeatable {
		for _, due := range shape.copies(p.last) {
			if !send(ctx, ahead, timed{data: piece.data, due: due, copy: true}) {
				return false
			}
		}
	}
	return true
}

func send(ctx context.Context, to chan<- timed, t timed) bool {
	select {
	case to <- t:
		return true
	case <-ctx.Done():
		return false
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// write passes on what is due. Copies wait aside, and hold nothing up.
func (p *pump) write(ctx context.Context, ahead <-chan timed) {
	var aside []timed // copies, by time
	var next *timed   // the piece whose turn it is
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		in := ahead
		if next != nil {
			in = nil
		}
		wake, waits := earliest(next, aside)
		if waits {
			timer.Reset(time.Until(wake))
		}
		select {
		case t, ok := <-in:
			switch {
			case !ok:
				_ = p.gate.pass(ctx)
				return
			case t.copy:
				aside = append(aside, t)
				slices.SortStableFunc(aside, func(a, b timed) int { return cmp.Compare(a.due.UnixNano(), b.due.UnixNano()) })
			default:
				next = &t
			}
		case <-timer.C:
			if !waits {
				continue
			}
			now := time.Now()
			if next != nil && !next.due.After(now) {
				if !p.pass(ctx, next.data) {
					return
				}
				next = nil
			}
			for len(aside) > 0 && !aside[0].due.After(now) {
				if !p.pass(ctx, aside[0].data) {
					return
				}
				aside = aside[1:]
			}
		case <-ctx.Done():
			return
		}
	}
}

// earliest is when something is due; false: nothing waits.
func earliest(next *timed, aside []timed) (at time.Time, waits bool) {
	if next != nil {
		at, waits = next.due, true
	}
	if len(aside) > 0 && (!waits || aside[0].due.Before(at)) {
		at, waits = aside[0].due, true
	}
	return at, waits
}

// pass writes once the gate is open; false: it cannot.
func (p *pump) pass(ctx context.Context, data []byte) bool {
	if p.gate.pass(ctx) != nil {
		return false
	}
	_, err := p.dst.Write(data)
	return err == nil
}

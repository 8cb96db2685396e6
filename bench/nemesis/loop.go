package nemesis

import (
	"context"
	"sync"
)

// loop is the work that a nemesis does again and again until it is stopped.
type loop struct {
	stop context.CancelFunc
	wg   sync.WaitGroup // the one goroutine
	err  error          // once it has ended
}

// begin runs work until the loop is ended; work returns when its ctx is over.
func (l *loop) begin(ctx context.Context, work func(ctx context.Context) error) {
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	l.wg.Go(func() { l.err = work(ctx) })
}

// end stops the work, waits for it and returns what went wrong.
func (l *loop) end() error {
	if l.stop == nil {
		return nil
	}
	l.stop()
	l.wg.Wait()
	return l.err
}

package group

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Run starts the replica and returns when all it started has ended: after ctx
// was cancelled (nil), or because an entry could not be applied. A replica runs
// once; what is queued when it ends is answered. An error also says if raft or an
// entry in flight did not end in time, which leaves goroutines behind.
func (r *Replica) Run(ctx context.Context) error {
	if !r.ran.CompareAndSwap(false, true) {
		return fmt.Errorf("replica %s was run before", r.cfg.ID)
	}
	changes := make(chan bool, 64)
	if err := r.start(changes); err != nil {
		r.stopped()
		close(r.ended)
		return err
	}
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	var watch sync.WaitGroup
	watch.Go(func() { r.watchLead(watching, changes) })

	running, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	d := &driver{r: r}
	work.Go(func() { d.run(running) })
	work.Go(func() { r.monitor(running) })

	var err error
	select {
	case <-ctx.Done():
	case err = <-r.failure:
		r.cfg.Fatal(err)
	}
	cancel()
	err = errors.Join(err, r.stop(&work))
	unwatch()
	watch.Wait()
	return err
}

// start opens raft.
func (r *Replica) start(changes chan<- bool) error {
	c := r.raftConfig(changes)
	if err := r.bootstrap(c); err != nil {
		return fmt.Errorf("bootstrap replica %s: %w", r.cfg.ID, err)
	}
	rf, err := raft.NewRaft(c, r.driven, r.store, r.store, r.snaps, r.cfg.Transport)
	if err != nil {
		return fmt.Errorf("start replica %s: %w", r.cfg.ID, err)
	}
	r.raft.Store(rf)
	if t, ok := r.cfg.Transport.(interface{ Serve(*raft.Raft) }); ok {
		t.Serve(rf)
	}
	return nil
}

// stop ends everything, in an order that lets each part finish: first what waits
// for raft, because raft answers for certain only while it runs; then raft.
func (r *Replica) stop(work *sync.WaitGroup) error {
	r.stopped()
	r.helpers.close()
	var err error
	half := r.timers.Shutdown / 2
	if !within(half, func() { work.Wait(); r.helpers.wg.Wait() }) {
		r.inflight.abandon(r.gather, "the replica stops before its commit")
	}
	close(r.ended)
	if !r.endRaft(half) {
		err = fmt.Errorf("raft of replica %s did not end within %v", r.cfg.ID, r.timers.Shutdown)
	}
	if !within(half, func() { work.Wait(); r.helpers.wg.Wait() }) {
		err = errors.Join(err, fmt.Errorf("an entry of replica %s did not end", r.cfg.ID))
	}
	return err
}

// stopped makes every take answer that this replica has stopped.
func (r *Replica) stopped() {
	gone := errors.New("stopped")
	r.failed.CompareAndSwap(nil, &gone)
	r.endLead()
	r.gather.shut(errStopped, true)
}

// endRaft shuts raft down. What hangs in the transport is freed by closing it.
func (r *Replica) endRaft(half time.Duration) bool {
	if t, ok := r.cfg.Transport.(interface{ Release() }); ok {
		t.Release()
	}
	over := r.raft.Load().Shutdown()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = over.Error() // closes the transport at its end
	}()
	if waitFor(done, half) {
		return true
	}
	if c, ok := r.cfg.Transport.(raft.WithClose); ok {
		_ = c.Close()
	}
	return waitFor(done, half)
}

// within runs f in a goroutine of its own and says whether it ended in time.
func within(d time.Duration, f func()) bool {
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	return waitFor(done, d)
}

// waitFor says whether done was closed in time.
func waitFor(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

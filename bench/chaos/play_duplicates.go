package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

const (
	duplicateBurst   = 10_000_000 // of the plan `million`
	duplicateWorkers = 256
	duplicateKeys    = 16
	duplicateTries   = 10               // of one copy, each with `patience`
	killEvery        = 10 * time.Second // a leader, meanwhile
	lateAfter        = 50               // ids of the same worker, until one of them is sent once more
)

// duplicates is ids that are each sent by two clients at once, and some once more
// when they are long answered.
type duplicates struct {
	a     *arena
	twins [2]library
	keys  []key
	next  atomic.Int64 // id
	total int64

	mu     sync.Mutex // guards what follows
	broken []string
	copies int
	failed int // attempts that had no definite answer
}

// playDuplicates: however often an id is sent, it is charged once.
func playDuplicates(ctx context.Context, a *arena, rounds int) error {
	d := &duplicates{a: a, total: int64(rounds * a.few(1_000_000, 20_000))}
	for i := range d.twins {
		lib, err := newLibrary(a.fleet.GRPC())
		if err != nil {
			return err
		}
		defer lib.close()
		d.twins[i] = lib
	}
	for range duplicateKeys {
		d.keys = append(d.keys, a.fresh("million"))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		inParallel(duplicateWorkers, duplicateWorkers, func(int) { d.work(ctx) })
	}()
	kills, err := d.killUntil(ctx, done)
	<-done
	if err != nil {
		return err
	}
	if _, err := a.healthy(ctx, "at the end"); err != nil {
		return err
	}
	for i, k := range d.keys {
		d.audit(ctx, i, k)
	}
	a.report.violate("ids", d.broken...)
	a.report.Rounds += rounds
	a.report.show("ids", "%d, each at least twice: %d copies, %d attempts repeated, %d leaders killed", d.total, d.copies, d.failed, kills)
	if kills == 0 && !a.short {
		a.report.doubt("no leader was killed meanwhile")
	}
	return ctx.Err()
}

// work sends ids until all are sent.
func (d *duplicates) work(ctx context.Context) {
	var past []func()
	for id := d.next.Add(1) - 1; id < d.total && ctx.Err() == nil; id = d.next.Add(1) - 1 {
		first := d.both(ctx, id)
		if past = append(past, func() { d.late(ctx, id, first) }); len(past) == lateAfter {
			past[0]()
			past = past[:0]
		}
	}
}

func (d *duplicates) request(id int64) client.Request {
	k := d.keys[id%duplicateKeys]
	return client.Request{Tenant: k.tenant, Plan: k.plan, RequestID: fmt.Sprintf("%x-%d", d.a.run, id)}
}

// both sends two copies at once; they must have the same answer.
func (d *duplicates) both(ctx context.Context, id int64) client.Decision {
	var answers [2]client.Decision
	var wg sync.WaitGroup
	for i := range d.twins {
		wg.Go(func() { answers[i] = d.send(ctx, d.twins[i], id) })
	}
	wg.Wait()
	d.same(id, answers[0], answers[1])
	return answers[0]
}

// late sends a copy of an id that was answered before.
func (d *duplicates) late(ctx context.Context, id int64, first client.Decision) {
	d.same(id, first, d.send(ctx, d.twins[id%2], id))
}

// send sends one copy until it has a definite answer.
func (d *duplicates) send(ctx context.Context, by library, id int64) (ans client.Decision) {
	var err error
	for range duplicateTries {
		try, cancel := context.WithTimeout(ctx, patience)
		ans, err = by.Decide(try, d.request(id))
		cancel()
		d.mu.Lock()
		d.copies++
		if err != nil {
			d.failed++
		}
		d.mu.Unlock()
		if err == nil || ctx.Err() != nil {
			return ans
		}
	}
	d.say("id %d has no answer after %d tries: %v", id, duplicateTries, err)
	return ans
}

func (d *duplicates) same(id int64, a, b client.Decision) {
	if !a.Allowed || a.Allowed != b.Allowed || a.Remaining != b.Remaining {
		d.say("id %d: one copy was allowed %v with %d left, another %v with %d", id, a.Allowed, a.Remaining, b.Allowed, b.Remaining)
	}
}

// say keeps the first broken promises.
func (d *duplicates) say(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.broken) < 10 {
		d.broken = append(d.broken, fmt.Sprintf(format, args...))
	}
}

// audit compares what a key has left with the ids that were charged to it.
func (d *duplicates) audit(ctx context.Context, i int, k key) {
	ids := d.total/duplicateKeys + min(1, max(0, d.total%duplicateKeys-int64(i)))
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ans, err := d.twins[0].Decide(ctx, client.Request{Tenant: k.tenant, Plan: k.plan, Look: true})
	switch want := uint64(duplicateBurst - ids); {
	case err != nil:
		d.say("look at key %d: %v", i, err)
	case ans.Remaining != want:
		d.say("key %d has %d left of %d after %d ids, want %d", i, ans.Remaining, duplicateBurst, ids, want)
	}
}

// killUntil kills and restarts the leader of one key's group after the other's.
func (d *duplicates) killUntil(ctx context.Context, done <-chan struct{}) (kills int, err error) {
	for {
		select {
		case <-time.After(killEvery):
		case <-done:
			return kills, nil
		case <-ctx.Done():
			return kills, ctx.Err()
		}
		_, node, err := d.a.leaderOf(ctx, d.keys[kills%duplicateKeys])
		if err != nil {
			return kills, err
		}
		if err := errors.Join(node.Kill(), pause(ctx, time.Second), node.Start()); err != nil {
			return kills, err
		}
		kills++
		if _, err := d.a.healthy(ctx, fmt.Sprintf("kill %d", kills)); err != nil {
			return kills, err
		}
	}
}

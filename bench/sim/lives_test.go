package sim

import (
	"context"
	"slices"
	"time"

	"github.com/ringlimit/ringlimit/cluster"
)

// launch starts a node, unless it runs or is not to be started again.
func (w *world) launch(i int, first bool) {
	name := nodeName(i)
	if !w.claim(name) {
		return
	}
	n, err := cluster.Open(w.config(i, name, first))
	w.mu.Lock()
	delete(w.busy, name)
	if err != nil {
		w.mu.Unlock()
		w.trace.broken("node %s does not start: %v", name, err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &node{Node: n, name: name, cancel: cancel, done: make(chan struct{})}
	w.nodes[name] = x
	w.mu.Unlock()
	w.trace.note("node %s starts", name)
	go w.follow(ctx, x)
}

// claim says whether the caller is to start a node. No lock is held meanwhile: who
// waits for one keeps the time of a bubble from going on.
func (w *world) claim(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.nodes[name] != nil || w.gone[name] || w.busy[name] || w.closed {
		return false
	}
	w.busy[name] = true
	if !slices.Contains(w.all, name) {
		w.all = append(w.all, name)
		w.weather(name)
	}
	return true
}

// weather gives the links of a new node the delays of the plan. w.mu is held.
func (w *world) weather(name string) {
	for _, o := range w.all {
		if o != name {
			w.net.Delay(name, o, w.plan.delay)
			w.net.Delay(o, name, w.plan.delay)
		}
	}
	for i, c := range clientHosts {
		w.net.Delay(name, c, w.plan.far[i])
		w.net.Delay(c, name, w.plan.far[i])
	}
}

// follow runs a node. One that ends for a reason of its own is started again a
// moment later, as whatever watches over processes would.
func (w *world) follow(ctx context.Context, x *node) {
	err := x.Run(ctx)
	w.mu.Lock()
	mine := w.nodes[x.name] == x
	if mine {
		delete(w.nodes, x.name)
		w.forgets(x.name)
		w.busy[x.name] = true
		w.gone[x.name] = w.gone[x.name] || err == nil // it was drained
	}
	w.mu.Unlock()
	close(x.done)
	w.trace.note("node %s ended: %v", x.name, err)
	if !mine {
		return
	}
	time.Sleep(time.Second)
	w.buried(x.name)
	w.launch(int(x.name[0]-'a'), false)
}

// kill ends a node as kill -9 would.
func (w *world) kill(name string) {
	x := w.take(name)
	if x == nil {
		return
	}
	w.trace.note("node %s is killed", name)
	w.net.Kill(name)
	x.Crash(errCrash)
	w.unhang(name)
	<-x.done
	x.cancel()
	w.buried(name)
}

// take makes a node the caller's, who ends it and says when it is buried. nil: it
// does not run, or is somebody else's.
func (w *world) take(name string) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := w.nodes[name]
	if x != nil {
		delete(w.nodes, name)
		w.forgets(name)
		w.busy[name] = true
	}
	return x
}

// buried makes room for the next life of a node.
func (w *world) buried(name string) {
	w.net.Kill(name)
	w.net.Revive(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.busy, name)
}

// stop ends a node as SIGTERM would.
func (w *world) stop(name string) {
	x := w.take(name)
	if x == nil {
		return
	}
	w.trace.note("node %s is told to stop", name)
	w.unhang(name) // a disk that hangs would outlast the process, and its lock with it
	x.cancel()
	<-x.done
	w.buried(name)
}

// close ends what still runs.
func (w *world) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	time.Sleep(time.Second) // what is starting has started
	for _, name := range w.running() {
		w.kill(name)
	}
	time.Sleep(35 * time.Second) // probes of gossip that are under way end by their own timers
}

package transport

import (
	"runtime/debug"
	"sync"
	"time"
)

// What strangers, and code that fails over and over, may make this node log: a
// burst of lines, then one a second.
const (
	quietBurst = 8
	quietEvery = time.Second
)

// quiet thins out log lines whose number somebody else decides. The zero value
// is ready; any goroutine may use it.
type quiet struct {
	mu      sync.Mutex // guards what follows
	used    int        // of the burst
	at      int64      // Peers.now of the last refill
	dropped int        // lines left out since the last one let through
}

// allow says whether a line may be logged now, and how many were left out before it.
func (q *quiet) allow(now int64) (dropped int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := (now - q.at) / int64(quietEvery); n > 0 {
		q.used = max(0, q.used-int(min(n, quietBurst)))
		q.at += n * int64(quietEvery)
	}
	if q.used == quietBurst {
		q.dropped++
		return 0, false
	}
	q.used++
	dropped, q.dropped = q.dropped, 0
	return dropped, true
}

// warn logs what another side may bring about as often as it likes. It says
// whether the line was logged.
func (p *Peers) warn(text string, args ...any) bool {
	dropped, ok := p.quiet.allow(p.now())
	if !ok {
		return false
	}
	if dropped > 0 {
		args = append(args, "left_out", dropped)
	}
	p.log.Warn(text, args...)
	return true
}

// contain, deferred around a function of Config, turns its panic into a log line:
// one request or one digest is lost, not the process. failed, if not nil, is
// told afterwards.
func (p *Peers) contain(what string, failed func()) {
	v := recover()
	if v == nil {
		return
	}
	p.warn("panic in a handler", "handler", what, "panic", v, "stack", string(debug.Stack()))
	if failed != nil {
		failed()
	}
}

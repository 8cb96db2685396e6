package transport

import "runtime/debug"

// warn logs what another side may bring about as often as it likes. It says
// whether the line was logged.
func (p *Peers) warn(text string, args ...any) bool {
	dropped, ok := p.quiet.Allow(p.now())
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

package group

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// sameEvery is how often one message is logged at most. A dead peer makes raft
// repeat itself several times a second.
const sameEvery = 10 * time.Second

// hclogger lets raft log to a slog.Logger. Raft's informational messages become
// debug ones; of a warning or error that repeats only one in sameEvery is logged,
// with the number of those left out.
type hclogger struct {
	to   *slog.Logger
	name string
	args []any
	seen *repeats
}

// repeats counts messages by their text.
type repeats struct {
	mu sync.Mutex // guards by
	by map[string]*repeated
}

type repeated struct {
	last    time.Time
	skipped int
}

func newHclog(to *slog.Logger) hclog.Logger {
	return &hclogger{to: to, seen: &repeats{by: make(map[string]*repeated)}}
}

// allow says whether msg may be logged now, and how many were left out before.
func (s *repeats) allow(msg string) (skipped int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.by[msg]
	if r == nil {
		if len(s.by) >= 256 {
			clear(s.by)
		}
		s.by[msg] = &repeated{last: time.Now()}
		return 0, true
	}
	if time.Since(r.last) < sameEvery {
		r.skipped++
		return 0, false
	}
	skipped = r.skipped
	r.last, r.skipped = time.Now(), 0
	return skipped, true
}

// level is the slog level of a message of raft.
func level(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelError
	case hclog.Warn:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

// Log implements hclog.Logger.
func (h *hclogger) Log(l hclog.Level, msg string, args ...any) {
	at := level(l)
	ctx := context.Background()
	if !h.to.Enabled(ctx, at) {
		return
	}
	if at >= slog.LevelWarn {
		skipped, ok := h.seen.allow(msg)
		if !ok {
			return
		}
		if skipped > 0 {
			args = slices.Concat(args, []any{"repeated", skipped})
		}
	}
	all := slices.Concat(h.args, args)
	for i, a := range all {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			all[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	h.to.Log(ctx, at, "raft: "+msg, all...)
}

func (h *hclogger) Trace(msg string, args ...any) { h.Log(hclog.Trace, msg, args...) }
func (h *hclogger) Debug(msg string, args ...any) { h.Log(hclog.Debug, msg, args...) }
func (h *hclogger) Info(msg string, args ...any)  { h.Log(hclog.Info, msg, args...) }
func (h *hclogger) Warn(msg string, args ...any)  { h.Log(hclog.Warn, msg, args...) }
func (h *hclogger) Error(msg string, args ...any) { h.Log(hclog.Error, msg, args...) }

func (h *hclogger) enabled(l hclog.Level) bool {
	return h.to.Enabled(context.Background(), level(l))
}

func (h *hclogger) IsTrace() bool                       { return false }
func (h *hclogger) IsDebug() bool                       { return h.enabled(hclog.Debug) }
func (h *hclogger) IsInfo() bool                        { return h.enabled(hclog.Info) }
func (h *hclogger) IsWarn() bool                        { return h.enabled(hclog.Warn) }
func (h *hclogger) IsError() bool                       { return h.enabled(hclog.Error) }
func (h *hclogger) ImpliedArgs() []any                  { return h.args }
func (h *hclogger) Name() string                        { return h.name }
func (h *hclogger) SetLevel(hclog.Level)                {}
func (h *hclogger) GetLevel() hclog.Level               { return hclog.NoLevel }
func (h *hclogger) Named(name string) hclog.Logger      { return h.named(h.name + name) }
func (h *hclogger) ResetNamed(name string) hclog.Logger { return h.named(name) }

// With returns a logger that adds args to every message.
func (h *hclogger) With(args ...any) hclog.Logger {
	c := *h
	c.args = append(c.args[:len(c.args):len(c.args)], args...)
	return &c
}

func (h *hclogger) named(name string) hclog.Logger {
	c := *h
	c.name = name
	return &c
}

// StandardLogger implements hclog.Logger; raft does not use it.
func (h *hclogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(h.to.Handler(), slog.LevelDebug)
}

// StandardWriter implements hclog.Logger; raft does not use it.
func (h *hclogger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return h.StandardLogger(o).Writer()
}

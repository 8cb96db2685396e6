// Package slogadapt lets hashicorp libraries log through log/slog.
package slogadapt

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// quiet is how long a message that was just logged stays silent: a dead peer
// makes raft repeat the same line several times a second.
const quiet = 10 * time.Second

// New returns an hclog.Logger that writes to l what the library of that name
// says. Equal messages are logged at most once in ten seconds, with the number
// of those left out. Levels go down by one: INFO is about the library's own
// workings, and an ERROR is mostly about a peer that is gone.
func New(l *slog.Logger, library string) hclog.Logger {
	return &adapter{l: l, prefix: library + ": ", seen: &repeats{last: make(map[string]*repeat)}}
}

type adapter struct {
	hclog.Logger // nil: every method used is defined below
	l            *slog.Logger
	prefix       string
	name         string
	seen         *repeats
}

type repeats struct {
	mu   sync.Mutex // guards last
	last map[string]*repeat
}

type repeat struct {
	at   time.Time
	left int // messages left out since
}

// pass says whether the message may be logged now, and how many were left out before it.
func (r *repeats) pass(msg string) (left int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	e := r.last[msg]
	if e == nil {
		if len(r.last) > 256 {
			clear(r.last)
		}
		r.last[msg] = &repeat{at: now}
		return 0, true
	}
	if now.Sub(e.at) < quiet {
		e.left++
		return 0, false
	}
	left, e.left, e.at = e.left, 0, now
	return left, true
}

func (a *adapter) log(level slog.Level, msg string, args []any) {
	ctx := context.Background()
	if !a.l.Enabled(ctx, level) {
		return
	}
	left, ok := a.seen.pass(msg)
	if !ok {
		return
	}
	if left > 0 {
		args = append(args, "left_out", left)
	}
	for i, v := range args {
		if f, ok := v.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	a.l.Log(ctx, level, a.prefix+msg, args...)
}

func (a *adapter) Log(level hclog.Level, msg string, args ...any) {
	switch {
	case level >= hclog.Error:
		a.Error(msg, args...)
	case level == hclog.Warn:
		a.Warn(msg, args...)
	default:
		a.Debug(msg, args...)
	}
}
func (a *adapter) Trace(string, ...any)             {}
func (a *adapter) Debug(msg string, args ...any)    { a.log(slog.LevelDebug, msg, args) }
func (a *adapter) Info(msg string, args ...any)     { a.log(slog.LevelDebug, msg, args) }
func (a *adapter) Warn(msg string, args ...any)     { a.log(slog.LevelInfo, msg, args) }
func (a *adapter) Error(msg string, args ...any)    { a.log(slog.LevelWarn, msg, args) }
func (a *adapter) IsTrace() bool                    { return false }
func (a *adapter) IsDebug() bool                    { return a.l.Enabled(context.Background(), slog.LevelDebug) }
func (a *adapter) IsInfo() bool                     { return a.IsDebug() }
func (a *adapter) IsWarn() bool                     { return true }
func (a *adapter) IsError() bool                    { return true }
func (a *adapter) ImpliedArgs() []any               { return nil }
func (a *adapter) Name() string                     { return a.name }
func (a *adapter) SetLevel(hclog.Level)             {}
func (a *adapter) GetLevel() hclog.Level            { return hclog.Debug }
func (a *adapter) ResetNamed(n string) hclog.Logger { return a.Named(n) }

func (a *adapter) With(args ...any) hclog.Logger {
	return &adapter{l: a.l.With(args...), prefix: a.prefix, name: a.name, seen: a.seen}
}

func (a *adapter) Named(n string) hclog.Logger {
	return &adapter{l: a.l, prefix: a.prefix, name: n, seen: a.seen}
}

func (a *adapter) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(a.StandardWriter(nil), "", 0)
}

func (a *adapter) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return writer{a} }

type writer struct{ a *adapter }

func (w writer) Write(p []byte) (int, error) {
	w.a.Info(string(p))
	return len(p), nil
}

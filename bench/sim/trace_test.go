package sim

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// trace is what happened: faults, changes of leaders, and the words of all nodes.
// The last megabytes are kept.
type trace struct {
	start time.Time

	mu     sync.Mutex // guards what follows
	lines  bytes.Buffer
	faults []string // of the simulation itself: they fail a run
}

// keptTrace bounds the trace of one run, in bytes.
const keptTrace = 16 << 20

func newTrace(start time.Time) *trace { return &trace{start: start} }

func (t *trace) write(who, format string, args ...any) {
	line := fmt.Sprintf("%12.6f %-6s %s\n", time.Since(t.start).Seconds(), who, fmt.Sprintf(format, args...))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lines.Len() < keptTrace {
		t.lines.WriteString(line)
	}
}

// note says what the simulation did or saw.
func (t *trace) note(format string, args ...any) { t.write("**", format, args...) }

// broken notes what fails the run, though no checker sees it.
func (t *trace) broken(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.note("BROKEN: %s", text)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, text)
}

// logger writes the words of one node into the trace.
func (t *trace) logger(name string) *slog.Logger {
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	return slog.New(&words{t: t, who: name, level: level})
}

// differs is what a node says of a replica that is not as its leader is. It compares them
// every second and has such a one replaced, so that none may be left at the end of a run.
const differs = "it differs from its leader"

// words is a slog.Handler that writes into the trace.
type words struct {
	t     *trace
	who   string
	level slog.Level
	with  string
}

func (h *words) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *words) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.t.write(h.who, "%s %s%s%s", r.Level, r.Message, b.String(), h.with)
	if r.Level >= slog.LevelError && strings.Contains(b.String(), differs) {
		h.t.broken("replicas: node %s: %s%s", h.who, r.Message, b.String())
	}
	return nil
}

func (h *words) WithAttrs(attrs []slog.Attr) slog.Handler {
	o := *h
	for _, a := range attrs {
		if a.Key != "node" {
			o.with += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
	}
	return &o
}

func (h *words) WithGroup(string) slog.Handler { return h }

// leaders notes each change of a group's leader, and each new epoch, until stop is
// closed.
func (w *world) leaders(stop <-chan struct{}) {
	last := make(map[string]string)
	for {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		r := w.status()
		if r == nil {
			continue
		}
		w.losses(r)
		w.remembers()
		w.leader(last, "control", r.ControlLeader)
		for _, g := range r.Groups {
			w.leader(last, fmt.Sprint("group ", g.Id), fmt.Sprintf("%s, epoch %d term %d", g.Leader, g.Epoch, g.Term))
		}
	}
}

func (w *world) leader(last map[string]string, of, now string) {
	if last[of] == now {
		return
	}
	last[of] = now
	w.trace.note("%s is led by %s", of, now)
}

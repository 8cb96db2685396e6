package check

import "fmt"

// logEntries is how many entries a sliding log keeps exactly. Beyond, times are
// rounded, and the model cannot follow.
const logEntries = 1000

// log is a sliding log: every charge in (now − window, now].
type log struct {
	limit   Limit
	now     int64
	entries []logEntry
	used    uint64
	lost    bool // more entries than are kept exactly
}

type logEntry struct {
	at   int64
	cost uint64
}

func newLog(l Limit, now int64) *log { return &log{limit: l, now: now} }

// fullLog is one of which all was used at slot time now.
func fullLog(l Limit, now int64) *log {
	g := newLog(l, now)
	if l.Amount > 0 {
		g.entries, g.used = []logEntry{{now, l.Amount}}, l.Amount
	}
	return g
}

func (g *log) clone() model { c := *g; c.entries = append([]logEntry(nil), g.entries...); return &c }

func (g *log) exact() bool { return true }

func (g *log) widen(uint64, uint64) {}

func (g *log) advance(now int64) {
	g.now = max(g.now, now)
	for len(g.entries) > 0 && g.now-g.entries[0].at >= g.limit.Window {
		g.used -= g.entries[0].cost
		g.entries = g.entries[1:]
	}
	if len(g.entries) == 0 {
		g.lost = false
	}
}

func (g *log) judge(o *Op) (wrong string, _, _ uint64) {
	wrong, done := certain(g.limit, o)
	if done || g.lost {
		return wrong, 0, 0
	}
	left := g.limit.Amount - min(g.used, g.limit.Amount)
	if passes := need(o) <= left; passes != o.Passed {
		return fmt.Sprintf("passed: %v, with %d left before it", o.Passed, left), 0, 0
	}
	if o.charged() && o.Cost > 0 {
		g.entries = append(g.entries, logEntry{g.now, o.Cost})
		g.used += o.Cost
		left -= o.Cost
		if g.lost = len(g.entries) > logEntries; g.lost {
			return "", 0, 0
		}
	}
	reset := int64(0)
	if n := len(g.entries); n > 0 {
		reset = g.entries[n-1].at + g.limit.Window - g.now
	}
	switch {
	case o.Remaining != left:
		return fmt.Sprintf("%d left, must be %d", o.Remaining, left), 0, 0
	case int64(o.ResetAfter) != reset:
		return fmt.Sprintf("reset after %v, must be %d ns", o.ResetAfter, reset), 0, 0
	case !o.Passed && o.RetryAfter != Never && int64(o.RetryAfter) != g.wait(need(o)):
		return fmt.Sprintf("retry after %v, must be %d ns", o.RetryAfter, g.wait(need(o))), 0, 0
	}
	return "", 0, 0
}

// wait is until so many tokens are left.
func (g *log) wait(tokens uint64) int64 {
	used := g.used
	for _, e := range g.entries {
		if used+tokens <= g.limit.Amount {
			break
		}
		used -= e.cost
		if used+tokens <= g.limit.Amount {
			return e.at + g.limit.Window - g.now
		}
	}
	return 0
}

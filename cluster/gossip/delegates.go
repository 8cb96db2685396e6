package gossip

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/ringlimit/ringlimit/internal/quiet"
)

// delegate answers memberlist's questions about this node. There are no user
// messages: configuration travels by raft only.
type delegate struct{ g *Gossip }

func (d delegate) NodeMeta(limit int) []byte {
	meta, err := json.Marshal(d.g.cfg.Meta())
	if err != nil || len(meta) > min(limit, metaLimit) {
		d.g.cfg.Logger.Error("gossip metadata left out", "bytes", len(meta), "error", err)
		return nil
	}
	return meta
}
func (delegate) NotifyMsg([]byte)                {}
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (delegate) LocalState(bool) []byte          { return nil }
func (delegate) MergeRemoteState([]byte, bool)   {}

// events is told of changes; memberlist calls it under its lock.
type events struct{ g *Gossip }

func (e events) NotifyJoin(n *memberlist.Node) {
	if n.Name != e.g.self {
		e.g.reached.Store(true)
	}
	e.g.heard(n)
}
func (e events) NotifyLeave(n *memberlist.Node)  { e.g.lost(n) }
func (e events) NotifyUpdate(n *memberlist.Node) { e.g.heard(n) }

// guard keeps nodes of another cluster out: two clusters never merge.
type guard struct{ g *Gossip }

func (a guard) NotifyAlive(n *memberlist.Node) error { return a.check(n) }

func (a guard) NotifyMerge(peers []*memberlist.Node) error {
	for _, n := range peers {
		if err := a.check(n); err != nil {
			return err
		}
	}
	return nil
}

func (a guard) check(n *memberlist.Node) error {
	own := a.g.cfg.Meta().Cluster
	m, ok := decode(n)
	if !ok {
		return fmt.Errorf("gossip from %q at %s is not of this kind of node", n.Name, n.Address())
	}
	if own == "" || m.Cluster == "" || own == m.Cluster {
		return nil
	}
	a.g.cfg.Logger.Error("a node of another cluster knocks; clusters never merge: give it an empty data directory or another --join",
		"node", m.Name, "address", m.Addr, "its_cluster", m.Cluster, "our_cluster", own)
	return fmt.Errorf("node %s belongs to cluster %s, not to %s", m.Name, m.Cluster, own)
}

// logger turns memberlist's "[LEVEL] memberlist: text" lines into slog records.
func logger(l *slog.Logger) *log.Logger { return log.New(&lines{l: l, began: time.Now()}, "", 0) }

type lines struct {
	l     *slog.Logger
	began time.Time
	quiet quiet.Lines // those that strangers may bring about
}

func (w *lines) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	level := slog.LevelDebug
	switch {
	case strings.HasPrefix(text, "[ERR"):
		level = slog.LevelWarn
	case strings.HasPrefix(text, "[WARN"):
		level = slog.LevelInfo
	}
	if _, rest, ok := strings.Cut(text, "] "); ok {
		text = rest
	}
	var more []any
	// So ends each line about what has come from an address, such as a packet that cannot
	// be decrypted: whoever sends decides how many there are.
	if level > slog.LevelDebug && strings.Contains(text, " from=") {
		dropped, ok := w.quiet.Allow(int64(time.Since(w.began)))
		if !ok {
			return len(p), nil
		}
		if dropped > 0 {
			more = []any{"left_out", dropped}
		}
	}
	w.l.Log(context.Background(), level, text, more...) // memberlist gives no context
	return len(p), nil
}

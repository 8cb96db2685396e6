package cluster

import (
	"bytes"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// peerTable keeps the newest digest of every other node and, out of them all,
// who leads each group.
type peerTable struct {
	mu      sync.Mutex // guards heard and next, and replaces leaders
	heard   map[string]heard
	next    map[uint32]claim                 // what elect found last: its own, to be filled again
	leaders atomic.Pointer[map[uint32]claim] // read without the lock on every decision
}

// heard is what one node said last.
type heard struct {
	incarnation string
	at          time.Time
	digest      *digest
	raw         []byte // of the digest
}

// claim is a node's word that it leads a group.
type claim struct {
	node    string
	epoch   uint32
	term    uint64
	serving bool
}

func newPeerTable() *peerTable {
	t := &peerTable{heard: make(map[string]heard), next: make(map[uint32]claim)}
	t.leaders.Store(&map[uint32]claim{})
	return t
}

// again takes in a digest that says what the node's last one said, as most do: it
// returns that one, nil where raw says something new.
func (t *peerTable) again(node, incarnation string, raw []byte, now time.Time) *digest {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.heard[node]
	if !ok || h.incarnation != incarnation || !bytes.Equal(h.raw, raw) {
		return nil
	}
	h.at = now
	t.heard[node] = h
	return h.digest
}

// hear takes in a digest, parsed out of raw, and reports whether any group's leader
// changed by it.
func (t *peerTable) hear(node, incarnation string, d *digest, raw []byte, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard[node] = heard{incarnation, now, d, bytes.Clone(raw)}
	return t.elect()
}

// news says whether d reports another set of links than the node's last digest.
func (t *peerTable) news(node string, d *digest) bool {
	h, ok := t.last(node)
	return !ok || !slices.Equal(h.digest.up, d.up)
}

// forget drops what nodes other than those named said, and reports whether any
// group's leader changed by it.
func (t *peerTable) forget(keep map[string]bool) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for node := range t.heard {
		if !keep[node] {
			delete(t.heard, node)
		}
	}
	return t.elect()
}

// elect recomputes who leads: for each group the claim of the highest epoch,
// then term. The caller holds mu.
func (t *peerTable) elect() (changed bool) {
	old := *t.leaders.Load()
	leaders := t.next
	clear(leaders)
	for node, h := range t.heard {
		for i := range h.digest.replicas {
			r := &h.digest.replicas[i]
			if !r.leads {
				continue
			}
			c := claim{node, r.epoch, r.term, r.serving && !h.digest.stopping}
			if best, ok := leaders[r.group]; !ok || c.newer(best) {
				leaders[r.group] = c
			}
		}
	}
	changed = len(leaders) != len(old)
	for g, c := range leaders {
		changed = changed || old[g] != c
	}
	if changed {
		t.leaders.Store(new(maps.Clone(leaders)))
	}
	return changed
}

func (c claim) newer(than claim) bool {
	if c.epoch != than.epoch {
		return c.epoch > than.epoch
	}
	return c.term > than.term
}

// leader returns the newest known leader of a group.
func (t *peerTable) leader(group uint32) (claim, bool) {
	c, ok := (*t.leaders.Load())[group]
	return c, ok
}

// last returns what a node said last.
func (t *peerTable) last(node string) (heard, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, ok := t.heard[node]
	return h, ok
}

// replica finds the newest digest of one replica.
func (t *peerTable) replica(node string, group, epoch uint32, serial uint64) (replicaDigest, bool) {
	h, ok := t.last(node)
	if !ok {
		return replicaDigest{}, false
	}
	for _, r := range h.digest.replicas {
		if r.group == group && r.epoch == epoch && r.serial == serial {
			return r, true
		}
	}
	return replicaDigest{}, false
}

package cluster

import (
	"testing"
	"time"
)

// TestRepeatedDigestIsHeard: the same words again keep a node alive and change
// nothing; of another process, or with a bit changed, they are news.
func TestRepeatedDigestIsHeard(t *testing.T) {
	table, now := newPeerTable(), time.Unix(0, 0)
	d := &digest{control: 7, up: []string{"b"}, replicas: []replicaDigest{{group: 1, epoch: 1, leads: true, serving: true, term: 3}}}
	raw := appendDigest(nil, d)
	if table.again("a", "i1", raw, now) != nil {
		t.Fatal("repeated before anything was said")
	}
	if !table.hear("a", "i1", d, raw, now) {
		t.Fatal("a leader is no news")
	}
	later := now.Add(time.Second)
	if got := table.again("a", "i1", append([]byte(nil), raw...), later); got != d {
		t.Fatalf("got %v", got)
	}
	if h, ok := table.last("a"); !ok || !h.at.Equal(later) || h.digest != d {
		t.Errorf("heard %v, %v", h, ok)
	}
	if table.again("a", "i2", raw, later) != nil {
		t.Error("another process was taken for the one before")
	}
	d2 := *d
	d2.stopping = true
	if table.again("a", "i1", appendDigest(nil, &d2), later) != nil {
		t.Error("a change was overlooked")
	}
	table.hear("a", "i1", &d2, raw, later)
	raw[2] ^= 1 // the caller's buffer is its own
	if table.again("a", "i1", raw, later) != nil {
		t.Error("the table keeps the caller's bytes")
	}
}

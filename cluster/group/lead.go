package group

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/api/fault"
)

// lead is what a replica knows about its own leadership.
type lead struct {
	serving atomic.Uint64 // term in which it serves; 0: it does not
	clock   atomic.Pointer[clock]

	mu      sync.Mutex // guards what follows; held to change it and to tell OnLead, in order
	leading bool
	gen     uint64 // number of changes seen; names one leadership
	since   time.Time
}

// current returns the name of the present leadership; ok is false if there is none.
func (l *lead) current() (gen uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gen, l.leading
}

// is says whether leadership gen is still the present one.
func (l *lead) is(gen uint64) bool {
	g, ok := l.current()
	return ok && g == gen
}

// age is how long this replica has been leading.
func (l *lead) age() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leading {
		return 0
	}
	return time.Since(l.since)
}

// watchLead follows raft's leadership until ctx ends. It always drains notify:
// raft's main loop would block on a full one.
func (r *Replica) watchLead(ctx context.Context, notify <-chan bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case leading := <-notify:
			if leading {
				r.gained()
			} else {
				r.lost()
			}
		}
	}
}

// gained opens the gather, unless the replica is stopping: takes may wait until
// this leader can serve.
func (r *Replica) gained() {
	l := &r.lead
	l.mu.Lock()
	l.leading, l.since = true, time.Now()
	l.gen++
	l.mu.Unlock()
	r.metrics.Elections.Add(1)
	r.gather.admit()
	r.gather.wake()
}

// serve ends the start of leadership gen: an entry of term is applied here.
func (r *Replica) serve(gen, term uint64) bool {
	l := &r.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.leading || l.gen != gen {
		return false
	}
	l.serving.Store(term)
	r.cfg.OnLead(term, true)
	return true
}

// lost answers all that wait.
func (r *Replica) lost() {
	r.endLead()
	r.gather.shut(r.notLeading(), false)
}

// endLead ends the present leadership, if there is one.
func (r *Replica) endLead() {
	l := &r.lead
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leading = false
	l.gen++
	if term := l.serving.Swap(0); term != 0 {
		r.cfg.OnLead(term, false)
	}
}

// servesNow says whether the applied state of this replica may be answered from:
// it leads, and has applied an entry of its term. A deposed leader may for a
// moment not know it yet.
func (r *Replica) servesNow() bool { return r.servingTerm() != 0 }

// servingTerm is the term in which it servesNow, 0 if it does not.
func (r *Replica) servingTerm() uint64 {
	term := r.lead.serving.Load()
	rf := r.raft.Load()
	if term == 0 || r.failed.Load() != nil || rf == nil || rf.State() != raft.Leader || rf.CurrentTerm() != term {
		return 0
	}
	return term
}

// notLeading is what a replica that does not lead answers: somebody else does, or nobody.
func (r *Replica) notLeading() error {
	switch leader := r.leader(); {
	case r.failed.Load() != nil:
		return errStopped
	case leader != "" && leader != r.cfg.ID:
		return fault.NotLeader
	default:
		return fault.NoLeader
	}
}

// leader is the id of the leader that raft knows, "" if none.
func (r *Replica) leader() string {
	rf := r.raft.Load()
	if rf == nil {
		return ""
	}
	_, id := rf.LeaderWithID()
	return string(id)
}

package group

import (
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/internal/ringlog"
)

// applied is what one entry did.
type applied struct {
	results     bucket.Results
	index, term uint64
	time        int64
}

// fsm is the bucket table as raft's state machine. Raft calls Apply,
// StoreConfiguration, Snapshot and Restore from one goroutine; takes peek and
// dumps begin from others.
type fsm struct {
	log      *ringlog.Store
	epoch    time.Time
	applying func()
	failed   func(error)      // told once that an entry could not be applied; must not block
	taken    func() *received // hands out the snapshot that was received, once
	busy     atomic.Int64     // when the entry being applied was begun, in ns since epoch; 0: idle
	view     viewHolder       // what others may read without waiting for an entry

	mu      sync.Mutex // guards what follows; held while one entry is applied, one call judged ahead, one dump begun
	table   *bucket.Table
	index   uint64 // of the newest command or configuration applied
	term    uint64 // of that entry
	conf    raft.Configuration
	confAt  uint64
	err     error         // an entry could not be applied: nothing further is
	waiting []expectation // the entries this replica has proposed: one, or chunks of several slots
}

// expectation tells Apply where the results of the entry with that data go.
type expectation struct {
	data *byte
	out  *applied
}

// Apply applies one committed entry. It returns the *applied with its results,
// where somebody here expects them, or the error for which this replica stops; a
// poisoned entry is never skipped.
func (f *fsm) Apply(l *raft.Log) any {
	out, err := f.apply(l)
	switch {
	case err != nil:
		return err
	case out == nil:
		// A replica that catches up has entries for a second of work: between two of
		// them come those who decide, who need a processor a few times a request. With
		// one processor they waited up to 20 ms each time.
		runtime.Gosched()
		return nil
	}
	return out
}

// apply returns where the results of the entry were expected, nil: nowhere here.
func (f *fsm) apply(l *raft.Log) (*applied, error) {
	f.busy.Store(int64(time.Since(f.epoch)) + 1)
	defer f.busy.Store(0)
	f.applying()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	var out *applied // nil: nobody here waits for the results
	for i := range f.waiting {
		if len(l.Data) > 0 && f.waiting[i].data == &l.Data[0] {
			out = f.waiting[i].out
		}
	}
	var results *bucket.Results
	if out != nil {
		results = &out.results
		results.Reset()
	}
	if err := f.table.Apply(l.Index, l.Data, results); err != nil {
		f.err = fmt.Errorf("apply entry %d of term %d: %w", l.Index, l.Term, err)
		f.failed(f.err)
		return nil, f.err
	}
	f.index, f.term = l.Index, l.Term
	f.publish()
	if out != nil {
		out.index, out.term, out.time = l.Index, l.Term, f.table.Time()
	}
	return out, nil
}

// StoreConfiguration notes a committed configuration, so that a dump says which
// members the group has at its index.
func (f *fsm) StoreConfiguration(index uint64, c raft.Configuration) {
	var l raft.Log
	err := f.log.GetLog(index, &l)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		// Raft has just read this entry from the same log.
		panic(fmt.Sprintf("group: configuration entry %d is not in the log", index))
	}
	f.conf, f.confAt = c, index
	f.index, f.term = index, l.Term
	f.publish()
}

// expect makes the results of entry go to out; entry must not be empty.
func (f *fsm) expect(entry []byte, out *applied) {
	f.mu.Lock()
	f.waiting = append(f.waiting, expectation{&entry[0], out})
	f.mu.Unlock()
}

// forget ends all that was expected. Afterwards Apply does not touch any out.
func (f *fsm) forget() {
	f.mu.Lock()
	clear(f.waiting)
	f.waiting = f.waiting[:0]
	f.mu.Unlock()
}

// Snapshot costs nothing: the state is written only when a follower needs it
// (see snapshots.Open), a periodic snapshot only lets raft drop old entries.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return metadataOnly{}, f.err
}

// Restore takes over the table that was received before; the reader is a token.
// On an error nothing changes.
func (f *fsm) Restore(token io.ReadCloser) error {
	defer token.Close()
	rec := f.taken()
	if rec == nil {
		return fmt.Errorf("restore: no snapshot was received")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if rec.index < f.index {
		return fmt.Errorf("restore: the snapshot is at %d, this replica at %d already", rec.index, f.index)
	}
	f.table = rec.table
	f.index, f.term = rec.index, rec.term
	f.conf, f.confAt = rec.conf, rec.confAt
	f.log.Restored(rec.index, rec.term, f.table.Time())
	f.publish()
	return nil
}

// stuckFor is how long the entry being applied has been at it.
func (f *fsm) stuckFor() time.Duration {
	since := f.busy.Load()
	if since == 0 {
		return 0
	}
	return time.Since(f.epoch) - time.Duration(since)
}

// metadataOnly is a snapshot without content.
type metadataOnly struct{}

func (metadataOnly) Persist(s raft.SnapshotSink) error {
	s.(*sink).local = true
	return s.Close()
}

func (metadataOnly) Release() {}

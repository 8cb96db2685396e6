package group

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/ringlimit/ringlimit/bucket"
)

// received is a snapshot that has arrived whole.
type received struct {
	header
	meta  raft.SnapshotMeta
	table *bucket.Table
}

// sink takes a snapshot in. Its methods are called by one goroutine of raft.
// What is written goes through a pipe straight into a new table, so that no
// serialised copy is ever held.
type sink struct {
	store *snapshots
	meta  raft.SnapshotMeta
	local bool // one of our own: metadata only

	pipe *io.PipeWriter // nil until something is written
	done chan struct{}  // closed when the decoder has ended
	got  *received      // what it made; read after done
	err  error          // or why it failed
	over bool           // Close or Cancel was called
}

var errCancelled = errors.New("the snapshot was cancelled")

// ID names the snapshot.
func (k *sink) ID() string { return k.meta.ID }

// Write decodes the next bytes of a received snapshot.
func (k *sink) Write(p []byte) (int, error) {
	if k.over {
		return 0, errCancelled
	}
	if k.pipe == nil {
		r, w := io.Pipe()
		k.pipe, k.done = w, make(chan struct{})
		go k.decode(r)
	}
	return k.pipe.Write(p)
}

// decode runs beside Write, and ends with the pipe.
func (k *sink) decode(r *io.PipeReader) {
	defer close(k.done)
	k.got, k.err = k.read(bufio.NewReaderSize(yieldingReader{r}, 64<<10))
	r.CloseWithError(k.err)
}

func (k *sink) read(r *bufio.Reader) (*received, error) {
	h, err := readHeader(r)
	if err != nil {
		return nil, fmt.Errorf("snapshot header: %w", err)
	}
	if h.index != k.meta.Index || h.term != k.meta.Term {
		return nil, fmt.Errorf("snapshot of index %d, term %d announced as %d, %d", h.index, h.term, k.meta.Index, k.meta.Term)
	}
	if at := k.store.fsm.view.load().index; h.index < at {
		return nil, fmt.Errorf("snapshot is at %d, this replica at %d already", h.index, at)
	}
	t := k.store.table()
	if err := t.Restore(r); err != nil {
		return nil, fmt.Errorf("snapshot content: %w", err)
	}
	if n, err := io.Copy(io.Discard, r); n != 0 || err != nil {
		return nil, fmt.Errorf("snapshot has %d bytes too many: %w", n, err)
	}
	if t.Index() > h.index || h.confAt > h.index {
		return nil, fmt.Errorf("snapshot of index %d has a table of %d and a configuration of %d", h.index, t.Index(), h.confAt)
	}
	return &received{header: h, meta: k.meta, table: t}, nil
}

// Close publishes the snapshot if it is whole; else it returns why not, and
// whatever was the newest stays so.
func (k *sink) Close() error {
	if k.over {
		return nil
	}
	k.over = true
	switch {
	case k.local:
		return k.store.keep(k.meta)
	case k.pipe == nil:
		return errors.New("the snapshot is empty")
	}
	k.pipe.Close()
	<-k.done
	if k.err != nil {
		return k.err
	}
	k.store.offer(k.got)
	return nil
}

// Cancel drops what has arrived.
func (k *sink) Cancel() error {
	if k.over {
		return nil
	}
	k.over = true
	if k.pipe != nil {
		k.pipe.CloseWithError(errCancelled)
		<-k.done
		k.got = nil
	}
	return nil
}

package group

import (
	"io"
	"time"

	"github.com/ringlimit/ringlimit/internal/ringlog"
)

// patience is for how long the log is held for a receiver that takes nothing of
// the dump that it is sent.
const patience = 2 * time.Second

// sent is a dump on its way. While it gets on the log is held, and then for as
// long again, in which the receiver asks for what came meanwhile.
type sent struct {
	io.ReadCloser
	began time.Time
	hold  *ringlog.Hold
}

func (d *sent) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	d.hold.For(max(patience, time.Since(d.began)))
	return n, err
}

// Close is called by raft once the receiver has restored the dump, or sending it
// has failed.
func (d *sent) Close() error {
	d.hold.For(time.Since(d.began))
	return d.ReadCloser.Close()
}

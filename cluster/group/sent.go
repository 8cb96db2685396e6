package group

import (
	"io"
	"time"

	"github.com/ringlimit/ringlimit/internal/ringlog"
)

// patience is for how long the log is held for a receiver that takes nothing of the
// dump that it is sent, or has taken all: longer than a connection is waited for.
const patience = 4 * time.Second

// sent is a dump on its way. While it gets on the log is held, and then for as
// long again, in which the receiver asks for what came meanwhile.
type sent struct {
	io.ReadCloser
	began time.Time
	hold  *ringlog.Hold
	left  int64 // bytes of it
}

func (d *sent) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	d.left -= int64(n)
	d.hold.For(max(patience, time.Since(d.began)))
	return n, err
}

// Close is called by raft once the receiver has restored the dump, or sending it
// has failed.
func (d *sent) Close() error {
	after := time.Duration(0) // nobody will ask for more
	if d.left <= 0 {
		after = max(patience, time.Since(d.began))
	}
	d.hold.For(after)
	return d.ReadCloser.Close()
}

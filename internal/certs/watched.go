package certs

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

// lookEvery is how often files are read again. They are read whole, as a few KB cost
// less than to be sure by time and length alone.
const lookEvery = time.Second

// watched is a set of files whose contents are taken over together when they change.
// After open it is used by the goroutine of run alone, but for refused.
type watched struct {
	what  string   // for the log
	paths []string // an empty one is left out: its contents are nil
	take  func(contents [][]byte) error
	tell  func() []any // for the log: how much of what is in use now
	log   *slog.Logger

	used    [sha256.Size]byte // digest of what is in use
	bad     [sha256.Size]byte // digest of what was refused last
	looks   int               // how often bad was seen in a row
	refused atomic.Int64
}

// open reads the files for the first time.
func (w *watched) open() error {
	contents, sum, err := w.read()
	if err != nil {
		return err
	}
	w.used = sum
	return w.take(contents)
}

// read returns the contents and a digest of them, or of why they cannot be read.
func (w *watched) read() (contents [][]byte, sum [sha256.Size]byte, err error) {
	hash := sha256.New()
	for _, path := range w.paths {
		var data []byte
		if path != "" {
			if data, err = os.ReadFile(path); err != nil {
				fmt.Fprint(hash, err)
				break
			}
		}
		fmt.Fprintf(hash, "%d ", len(data))
		hash.Write(data)
		contents = append(contents, data)
	}
	hash.Sum(sum[:0])
	return contents, sum, err
}

// run looks until ctx ends.
func (w *watched) run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			w.look()
		}
	}
}

// look takes changed files over. Those that are bad are looked at once more before
// anybody is told: several files cannot be replaced in one moment.
func (w *watched) look() {
	contents, sum, err := w.read()
	if sum == w.used {
		w.looks = 0
		return
	}
	if err == nil {
		err = w.take(contents)
	}
	if err == nil {
		w.used, w.looks = sum, 0
		w.log.Info("files changed and are in use", append([]any{"what", w.what}, w.tell()...)...)
		return
	}
	if sum != w.bad {
		w.bad, w.looks = sum, 0
	}
	if w.looks++; w.looks == 2 {
		w.refused.Add(1)
		w.log.Error("files changed and cannot be used: what was read before stays in use", "what", w.what, "error", err)
	}
}

// Run reads the files again when they change, until ctx ends. It returns ctx's error.
func (s *Store) Run(ctx context.Context) error { return s.files.run(ctx) }

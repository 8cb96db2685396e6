package group

import (
	"io"
	"runtime"
)

// A snapshot is a second of work for a processor, at both ends. What follows lets
// others run between two pieces of it: those who decide need a processor a few times a
// request, and where there is only one, each time waits for whoever computes.

// yieldingReader yields after each piece that it has read.
type yieldingReader struct{ r io.Reader }

func (y yieldingReader) Read(p []byte) (int, error) {
	n, err := y.r.Read(p)
	runtime.Gosched()
	return n, err
}

// yieldingWriter yields after each piece that it has written.
type yieldingWriter struct{ w io.Writer }

func (y yieldingWriter) Write(p []byte) (int, error) {
	n, err := y.w.Write(p)
	runtime.Gosched()
	return n, err
}

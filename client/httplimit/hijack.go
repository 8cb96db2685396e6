package httplimit

import (
	"bufio"
	"io"
	"net"
	"net/http"
)

// wrap makes w tell when its connection is hijacked, if that can happen at all: HTTP/2
// and tests know no such thing, and a request without a permit does not care. They keep
// their own w.
func (p *permits) wrap(w http.ResponseWriter) http.ResponseWriter {
	if p == nil || !hijackable(w) {
		return w
	}
	out := &writer{ResponseWriter: w, permits: p}
	if _, ok := w.(http.Flusher); ok {
		return flusher{out}
	}
	return out
}

func hijackable(w http.ResponseWriter) bool {
	for {
		if _, ok := w.(http.Hijacker); ok {
			return true
		}
		inner, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return false
		}
		w = inner.Unwrap()
	}
}

// writer is a ResponseWriter that can be hijacked.
type writer struct {
	http.ResponseWriter
	permits *permits
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ReadFrom keeps the ways of copying that the writer within has.
func (w *writer) ReadFrom(src io.Reader) (int64, error) { return io.Copy(w.ResponseWriter, src) }

// WriteString likewise.
func (w *writer) WriteString(s string) (int, error) { return io.WriteString(w.ResponseWriter, s) }

// Hijack leaves the permits to the connection.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.permits.hijacked.Store(true)
	out := &hijacked{Conn: conn, permits: w.permits}
	if _, ok := conn.(halfCloser); ok {
		return halfClosing{out}, buffered, nil
	}
	return out, buffered, nil
}

// flusher is a writer that can flush.
type flusher struct{ *writer }

// Flush sends what is buffered.
func (w flusher) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController.
func (w flusher) FlushError() error { return http.NewResponseController(w.ResponseWriter).Flush() }

// hijacked is a connection that holds permits until it is closed.
type hijacked struct {
	net.Conn
	permits *permits
}

// Close closes the connection and gives its permits back, without waiting for that.
func (c *hijacked) Close() error {
	c.permits.connEnded()
	return c.Conn.Close()
}

// NetConn returns the connection within, as that of a tls.Conn does. Closing that one
// keeps the permits.
func (c *hijacked) NetConn() net.Conn { return c.Conn }

// halfCloser can end its writing alone, as TCP and TLS connections can.
type halfCloser interface{ CloseWrite() error }

// halfClosing is a hijacked connection that can.
type halfClosing struct{ *hijacked }

// CloseWrite ends the writing; the permits stay.
func (c halfClosing) CloseWrite() error { return c.Conn.(halfCloser).CloseWrite() }

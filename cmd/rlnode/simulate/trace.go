package simulate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/policy"
)

// maxLine bounds one line of a trace, in bytes.
const maxLine = 1 << 20

// Event is one request of a trace.
type Event struct {
	T       string // its time as the trace has it, in seconds
	Time    int64  // the same in ns
	Request policy.Request
}

// LineError says what is wrong in a trace, and where.
type LineError struct {
	File         string
	Line, Column int // from 1
	Reason       string
}

func (e *LineError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
}

// Trace reads events, one JSON object a line. It holds one line at a time.
type Trace struct {
	file   string
	in     *bufio.Reader
	number int
	last   int64
	lastT  string
	line   line
}

// NewTrace reads from r; file is its name in errors.
func NewTrace(file string, r io.Reader) *Trace {
	return &Trace{file: file, in: bufio.NewReaderSize(r, 64<<10)}
}

// Next returns the next event, valid until the next call; io.EOF after the last.
// Empty lines are passed over. Other errors are a *LineError or from reading.
func (t *Trace) Next() (*Event, error) {
	for {
		b, err := t.read()
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(b)) == 0 {
			continue
		}
		e, err := t.parse(b)
		var at *columnError
		if errors.As(err, &at) {
			return nil, &LineError{t.file, t.number, at.column, at.reason}
		}
		return e, err
	}
}

// read returns the next line without its end.
func (t *Trace) read() ([]byte, error) {
	t.number++
	var long []byte
	for {
		b, err := t.in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(long)+len(b) <= maxLine:
			long = append(long, b...)
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, &LineError{t.file, t.number, maxLine, fmt.Sprintf("line is longer than %d bytes", maxLine)}
		case errors.Is(err, io.EOF) && len(long)+len(b) == 0:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%s: line %d: %w", t.file, t.number, err)
		}
		if long != nil {
			b = append(long, b...)
		}
		return bytes.TrimRight(b, "\r\n"), nil
	}
}

// parse reads one line and holds it to the rules.
func (t *Trace) parse(b []byte) (*Event, error) {
	l := &t.line
	if err := l.read(b); err != nil {
		return nil, err
	}
	e := &l.event
	if e.T == "" {
		return nil, l.wrong("", "no t, want a time such as \"59.01\"")
	}
	if !l.has("request") {
		return nil, l.wrong("", "no request, want an object such as {\"tenant\":\"acme\"}")
	}
	ns, reason := parseTime(e.T)
	if reason != "" {
		return nil, l.wrong("t", "%q %s", e.T, reason)
	}
	if ns < t.last {
		return nil, l.wrong("t", "%q is before %q of an earlier line; times must not decrease", e.T, t.lastT)
	}
	e.Time, t.last = ns, ns
	t.lastT = e.T
	if err := e.Request.Validate(); err != nil {
		var f *fault.Error
		if !errors.As(err, &f) {
			return nil, err
		}
		return nil, l.wrong(f.Field, "%s", err)
	}
	return e, nil
}

// parseTime reads seconds as a decimal number, exactly, in ns. reason says what
// is wrong with it.
func parseTime(text string) (ns int64, reason string) {
	whole, part, dot := strings.Cut(text, ".")
	if whole == "" || dot && part == "" || strings.Trim(whole+part, "0123456789") != "" {
		return 0, "is no time: want seconds as a decimal number such as \"59.01\", not below 0"
	}
	if len(strings.TrimRight(part, "0")) > 9 {
		return 0, "is finer than a nanosecond: want at most 9 digits after the point"
	}
	digits := strings.TrimLeft(whole, "0") + (part + "000000000")[:9]
	for _, c := range digits {
		d := int64(c - '0')
		if ns > (math.MaxInt64-d)/10 {
			return 0, "is too large: want at most 9223372036.854775807"
		}
		ns = 10*ns + d
	}
	return ns, ""
}

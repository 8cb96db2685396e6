package rest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/ringlimit/ringlimit/api/fault"
)

// How long bodies may be, in bytes.
const (
	maxDecisionBody = 64 << 10 // of one decision or permit
	maxBatchBody    = 1 << 20
	maxPolicyBody   = 64 << 10 // of one policy or override
)

// body reads the body, at most most bytes of it, and begins to scan it. How long it
// says it is only lets it be refused early: memory grows with what has come.
func (c *call) body(most int64) (scan, error) {
	if err := c.checkType(); err != nil {
		return scan{}, err
	}
	if c.r.ContentLength > most {
		return scan{}, tooLarge(most)
	}
	body := http.MaxBytesReader(c.w, c.r.Body, most)
	c.in = c.in[:0]
	for {
		if len(c.in) == cap(c.in) {
			c.in = append(c.in, 0)[:len(c.in)]
		}
		n, err := body.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		if err == io.EOF { // readers return it as it is
			return newScan(c.in)
		}
		if err != nil {
			return scan{}, readError(err, most)
		}
	}
}

func tooLarge(most int64) error {
	return &refusal{status: http.StatusRequestEntityTooLarge, detail: fmt.Sprintf("the body is longer than %d bytes", most)}
}

func readError(err error, most int64) error {
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return tooLarge(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{status: http.StatusRequestTimeout, detail: "the body did not come in time"}
	default:
		return &refusal{status: http.StatusBadRequest, detail: "the body did not come whole"}
	}
}

// checkType wants JSON. What a caller accepts is not asked: there is nothing else.
func (c *call) checkType() error {
	refuse := func(format string, args ...any) error {
		return &refusal{status: http.StatusUnsupportedMediaType, detail: fmt.Sprintf(format, args...), accept: typeJSON[0]}
	}
	if text, ok, err := c.header("Content-Encoding"); err != nil || ok && !strings.EqualFold(text, "identity") {
		return refuse("Content-Encoding: %s, want none", printable(text))
	}
	text, ok, err := c.header("Content-Type")
	if err != nil {
		return err
	}
	if !ok {
		return refuse("no Content-Type, want application/json")
	}
	if text == typeJSON[0] {
		return nil
	}
	kind, params, err := mime.ParseMediaType(text)
	if err != nil || kind != typeJSON[0] {
		return refuse("Content-Type: %s, want application/json", printable(text))
	}
	if set := params["charset"]; set != "" && !strings.EqualFold(set, "utf-8") {
		return refuse("charset %s, want utf-8", printable(set))
	}
	return nil
}

// noBody refuses a body where none is read: it would be taken for something.
func (c *call) noBody() error {
	if c.r.ContentLength > 0 {
		return fault.Field("", "a body of %d bytes, want none", c.r.ContentLength)
	}
	return nil
}

package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringlimit/ringlimit/api/fault"
)

// deadlineError is fault.Deadline and the context's own error at once.
type deadlineError struct {
	why   error // of the context
	sent  bool
	cause error // the last answer that made the call wait; nil: none came
}

func (e *deadlineError) Error() string {
	text := e.why.Error()
	if !e.sent {
		text += ", never sent, so not charged"
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap leaves the cause out: it is for people, and says nothing about the charge.
func (e *deadlineError) Unwrap() []error { return []error{fault.Deadline, e.why} }

// reason is why a context has ended, told in the words of its cause.
func reason(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil || cause == err {
		return err
	}
	return &reasonError{err, cause}
}

// reasonError is a context's error in the words of its cause.
type reasonError struct{ err, cause error }

func (e *reasonError) Error() string   { return e.cause.Error() }
func (e *reasonError) Unwrap() []error { return []error{e.err, e.cause} }

func (c *Client) gaveUp(why error, sent bool, cause error) error {
	c.counts.expired.Add(1)
	return &deadlineError{why, sent, cause}
}

// gaveUpOn is the error of a call that its context ended.
func (c *Client) gaveUpOn(k *call, why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outOfTime(k, why)
}

// outOfTime is the error of a call that nobody waits for any more: with what made
// it wait, or else why there is no node to ask. mu is held.
func (c *Client) outOfTime(k *call, why error) error {
	cause := k.cause
	if cause == nil {
		cause = c.lastLoss
	}
	return c.gaveUp(why, k.attempt.Load() > 0, cause)
}

func requestPath(i int, field string) string {
	if field == "" {
		return fmt.Sprintf("requests[%d]", i)
	}
	return fmt.Sprintf("requests[%d].%s", i, field)
}

// mayHaveHappened says whether a copy that ended so may have been decided all the same.
func mayHaveHappened(err error) bool {
	return errors.Is(err, fault.OutcomeUnknown) || errors.Is(err, fault.Deadline)
}

// honest is how a call ends whose last copy did with err. Most kinds of errors promise
// that nothing was charged: not where the outcome of an earlier copy is unknown.
func honest(unknown bool, err error) error {
	var e *fault.Error
	if !unknown || !errors.As(err, &e) {
		return err
	}
	switch e.Kind {
	case fault.OutcomeUnknown, fault.Deadline, fault.Internal, fault.InvalidArgument, fault.IDReused:
		return err // they promise nothing, or hold for every copy
	}
	return fault.New(fault.OutcomeUnknown, "of an earlier copy; the last was refused: %v", err)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/client"
)

// newClient is a client that says nothing beside the command's own answer: what it
// meets on its way is in the error, if there is one. What the cluster does not answer
// is an error too: a command tells what the cluster says, and nothing else.
func newClient(addrs nodes, more ...client.Option) (*client.Client, error) {
	if addrs.secure() {
		more = append(more, client.WithTLS(addrs.files))
	}
	return client.New(addrs.addrs, append(more, client.NeverDegrade(), client.WithLogger(slog.New(slog.DiscardHandler)))...)
}

// within bounds a command by its --timeout, and says so when that has passed.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
}

// decide asks once more if the id that the client gave is too old, as after a new
// epoch, and nothing can have been charged: it only looks. A copy that was sent before
// may have been, and asking under another id would charge it again.
func decide(ctx context.Context, c *client.Client, r client.Request) (client.Decision, error) {
	d, err := c.Decide(ctx, r)
	switch {
	case r.RequestID != "" || !errors.Is(err, fault.TooOld):
		return d, err
	case r.Look:
		return c.Decide(ctx, r)
	}
	return d, fmt.Errorf("%w; an earlier copy of it may have been charged: ask again for another decision", err)
}

// told is an error as its reader needs it: what the user typed wrong is wrong usage,
// and where no answer came the cluster's state says why.
func told(err error) error {
	switch {
	case errors.Is(err, fault.InvalidArgument):
		return usageError{err}
	case errors.Is(err, fault.Deadline):
		return fmt.Errorf("%w: see rlnode status", err)
	}
	return err
}

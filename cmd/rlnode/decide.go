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
// meets on its way is in the error, if there is one.
func newClient(addrs []string, more ...client.Option) (*client.Client, error) {
	return client.New(addrs, append(more, client.WithLogger(slog.New(slog.DiscardHandler)))...)
}

// within bounds a command by its --timeout, and says so when that has passed.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
}

// decide asks once more if the id that the client gave is too old, as after a new
// epoch: nothing was charged under it by whoever said so. Of an id of the user's own
// nobody else may say that it is another request.
func decide(ctx context.Context, c *client.Client, r client.Request) (client.Decision, error) {
	d, err := c.Decide(ctx, r)
	if r.RequestID == "" && errors.Is(err, fault.TooOld) {
		d, err = c.Decide(ctx, r)
	}
	return d, err
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

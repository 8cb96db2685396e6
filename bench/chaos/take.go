package main

import (
	"context"
	"log/slog"

	"github.com/ringlimit/ringlimit/client"
)

// library is a caller by the Go client library, as applications use it, which also
// asks where in the log each answer was made.
type library struct{ *client.Client }

func newLibrary(addrs []string) (library, error) {
	c, err := client.New(addrs, client.NeverDegrade(), client.WithLogger(slog.New(slog.DiscardHandler)))
	return library{c}, err
}

func (l library) take(ctx context.Context, k key, cost int64) (client.Decision, error) {
	return l.Decide(ctx, client.Request{Tenant: k.tenant, Plan: k.plan, Cost: cost, Look: cost == 0, Witness: true})
}

func (l library) close() { _ = l.Close() }

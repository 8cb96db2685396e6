package main

import (
	"context"
	"log/slog"

	"github.com/ringlimit/ringlimit/client"
)

// library is a caller by the Go client library, as applications use it.
type library struct{ *client.Client }

func newCaller(addrs []string) (caller, error) {
	c, err := client.New(addrs, client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, err
	}
	return library{c}, nil
}

func (l library) take(ctx context.Context, k key, cost int64) (answer, error) {
	d, err := l.Decide(ctx, client.Request{Tenant: k.tenant, Plan: k.plan, Cost: cost})
	if err != nil {
		return answer{}, err
	}
	return answer{
		allowed: d.Allowed, remaining: d.Remaining, slotTime: int64(d.SlotTime), group: d.Group,
		term: d.Term, index: d.Index, uncommitted: d.Uncommitted, degraded: d.Degraded,
	}, nil
}

func (l library) close() { _ = l.Close() }

package grpclimit

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// meters counts what nobody could decide: ringlimit.grpclimit.undecided, by outcome.
type meters struct {
	count                metric.Int64Counter
	opened, unavailables metric.MeasurementOption
}

func newMeters(p metric.MeterProvider, log *slog.Logger) *meters {
	outcome := func(is string) metric.MeasurementOption {
		return metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", is)))
	}
	m := &meters{opened: outcome("open"), unavailables: outcome("unavailable")}
	var err error
	m.count, err = p.Meter("github.com/ringlimit/ringlimit/client/grpclimit").Int64Counter("ringlimit.grpclimit.undecided",
		metric.WithUnit("{call}"), metric.WithDescription("Calls and messages that neither the cluster nor a failure mode decided."))
	if err != nil {
		log.Warn("ringlimit: no metric of undecided calls", "error", err)
	}
	return m
}

func (m *meters) open()        { m.count.Add(context.Background(), 1, m.opened) }
func (m *meters) unavailable() { m.count.Add(context.Background(), 1, m.unavailables) }

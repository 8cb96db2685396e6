package client

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// scope is the name under which the client's metrics stand.
const scope = "github.com/ringlimit/ringlimit/client"

// meters are the metrics of a client: counters that the application's own exporter
// tells, if it has one.
//
//	ringlimit.client.degraded      answers that no bucket of the cluster made, by mode and by why
//	ringlimit.client.late_answers  decisions of the cluster that came when their call had been given up, by allowed
//	ringlimit.client.remembered    denials that were answered from memory
//	ringlimit.client.leased_units  units of leases, by fate: granted, and of those returned or expired
type meters struct {
	degrading, lateness, remembering, leasing metric.Int64Counter
	byMode                                    map[FailureMode]*[reasons]metric.MeasurementOption
	byAllowed                                 map[bool]metric.MeasurementOption
	byFate                                    [leaseFates]metric.MeasurementOption
}

func newMeters(p metric.MeterProvider, log *slog.Logger) *meters {
	m := &meters{byMode: map[FailureMode]*[reasons]metric.MeasurementOption{}, byAllowed: map[bool]metric.MeasurementOption{}}
	meter := p.Meter(scope)
	var err error
	if m.degrading, err = meter.Int64Counter("ringlimit.client.degraded", metric.WithUnit("{answer}"),
		metric.WithDescription("Answers that no bucket of the cluster made: by a policy's failure mode.")); err != nil {
		log.Warn("ringlimit: no metric of degraded answers", "error", err)
	}
	if m.lateness, err = meter.Int64Counter("ringlimit.client.late_answers", metric.WithUnit("{answer}"),
		metric.WithDescription("Decisions of the cluster that came when their call had been given up.")); err != nil {
		log.Warn("ringlimit: no metric of late answers", "error", err)
	}
	if m.remembering, err = meter.Int64Counter("ringlimit.client.remembered", metric.WithUnit("{answer}"),
		metric.WithDescription("Denials that were answered from memory.")); err != nil {
		log.Warn("ringlimit: no metric of remembered denials", "error", err)
	}
	if m.leasing, err = meter.Int64Counter("ringlimit.client.leased_units", metric.WithUnit("{unit}"),
		metric.WithDescription("Units of leases, each a cost of 1, by what became of them.")); err != nil {
		log.Warn("ringlimit: no metric of leased units", "error", err)
	}
	for fate, text := range leaseFateText {
		m.byFate[fate] = metric.WithAttributeSet(attribute.NewSet(attribute.String("fate", text)))
	}
	for _, mode := range []FailureMode{ModeLocal, ModeClosed, ModeOpen, ModeNoPolicy} {
		m.byMode[mode] = new([reasons]metric.MeasurementOption)
		for i, why := range becauseText {
			m.byMode[mode][i] = metric.WithAttributeSet(attribute.NewSet(attribute.String("mode", string(mode)), attribute.String("why", why)))
		}
	}
	for _, allowed := range []bool{false, true} {
		m.byAllowed[allowed] = metric.WithAttributeSet(attribute.NewSet(attribute.Bool("allowed", allowed)))
	}
	return m
}

func (m *meters) degraded(mode FailureMode, why because) {
	m.degrading.Add(context.Background(), 1, m.byMode[mode][why])
}

func (m *meters) late(allowed bool) {
	m.lateness.Add(context.Background(), 1, m.byAllowed[allowed])
}

// What becomes of units of leases; those not returned or expired were spent.
type leaseFate int

const (
	leaseGranted leaseFate = iota
	leaseReturned
	leaseExpired
	leaseFates
)

var leaseFateText = [leaseFates]string{"granted", "returned", "expired"}

func (m *meters) leased(fate leaseFate, units int64) {
	m.leasing.Add(context.Background(), units, m.byFate[fate])
}

func (m *meters) rememberedOne() { m.remembering.Add(context.Background(), 1) }

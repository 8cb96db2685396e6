package cluster

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/cluster/group"
	"github.com/ringlimit/ringlimit/policy"
)

// metrics are what the node counts itself; what its replicas count is read from
// them at each scrape.
type metrics struct {
	registry  *prometheus.Registry
	takes     prometheus.Counter
	forwarded prometheus.Counter
	noMatch   prometheus.Counter
	decisions [2][2]prometheus.Counter // [allowed][uncommitted]
	differ    prometheus.Counter
	undone    prometheus.Counter
	stale     prometheus.Counter
	elsewhere prometheus.Counter
	busy      prometheus.Histogram
	moves     *moveMetrics
	epochs    prometheus.Counter
	salvaged  *prometheus.CounterVec // by kind of source
	noRoom    *prometheus.CounterVec
	leases    [2]prometheus.Counter // [allowed]
	units     prometheus.Counter
	refunds   prometheus.Counter
}

func newMetrics(n *Node) *metrics {
	m := &metrics{
		registry:  prometheus.NewRegistry(),
		takes:     prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_takes_total", Help: "Requests that reached this node, forwarded ones included; not those refused before they were read."}),
		forwarded: prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_forwarded_total", Help: "Requests this node passed on to the leader of their group."}),
		noMatch:   prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_no_policy_total", Help: "Requests to which no policy applied."}),
	}
	m.stale = prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_policy_stale_total", Help: "Requests matched again because their group held newer policies."})
	m.elsewhere = prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_slot_waits_total", Help: "Requests that waited on this node because their slot was on its way to another group."})
	m.epochs = prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_new_epochs_total", Help: "Groups made anew because a majority of their replicas was lost for good, since this process started."})
	m.busy = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "ringlimit_busy_seconds", Help: "From reading a message of callers to answering that all or some of it was refused, because as much waits as can be decided in time.",
		Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1},
	})
	m.salvaged, m.moves = newSalvaged(), newMoveMetrics()
	m.undone = prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_standing_charges_total", Help: "Charges of denied requests over several groups that could not be given back in time; a retry with the same id repairs them."})
	m.differ = prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_replicas_differ_total", Help: "Replicas of this node found to differ from their leader; always 0, or there is a fault in the program or the machine."})
	m.noRoom = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ringlimit_store_full_total", Help: "Requests on new keys that met their policy's failure mode because the cap on buckets or request ids was reached.",
	}, []string{"mode"})
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ringlimit_decisions_total", Help: "Decisions made by groups this node leads.",
	}, []string{"allowed", "committed"})
	for allowed := range 2 {
		for uncommitted := range 2 {
			m.decisions[allowed][uncommitted] = decisions.WithLabelValues(yes(allowed), yes(1-uncommitted))
		}
	}
	leases := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "ringlimit_leases_total", Help: "Leases that groups this node leads were asked for."}, []string{"allowed"})
	m.leases = [2]prometheus.Counter{leases.WithLabelValues("false"), leases.WithLabelValues("true")}
	m.units = prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_leased_units_total", Help: "Units of those leases; each is what one request costs."})
	m.refunds = prometheus.NewCounter(prometheus.CounterOpts{Name: "ringlimit_refunds_total", Help: "Charges given back, and leases returned before all of them was spent, that callers asked this node for."})
	m.registry.MustRegister(leases, m.units, m.refunds, m.noRoom, m.differ, m.epochs, m.undone, m.stale, m.elsewhere, m.busy, m.takes, m.forwarded, m.noMatch, decisions,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.salvaged, m.moves.parts, m.moves.waits, &checkpointCollector{n}, &replicaCollector{n}, &queueCollector{n}, &placementCollector{n}, &secretsCollector{n})
	return m
}

func yes(i int) string { return strconv.FormatBool(i == 1) }

func (m *metrics) count(d *pb.Decision) {
	m.decisions[flag(d.Allowed)][flag(d.Uncommitted)].Inc()
}

// full counts a request that met a failure mode for want of room.
func (m *metrics) full(mode policy.FailureMode) { m.noRoom.WithLabelValues(mode.String()).Inc() }

// replicaCollector turns the state and the counters of the replicas that run
// here into metrics, labelled by group.
type replicaCollector struct{ n *Node }

func perGroup(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ringlimit_group_"+name, help, []string{"group"}, nil)
}

var gauges = []struct {
	desc *prometheus.Desc
	read func(*group.Status) float64
}{
	{perGroup("leads", "1 where this node leads the group."), func(s *group.Status) float64 { return float64(flag(s.Serving)) }},
	{perGroup("term", "Raft term."), func(s *group.Status) float64 { return float64(s.Term) }},
	{perGroup("applied_index", "Last log index applied."), func(s *group.Status) float64 { return float64(s.Applied) }},
	{perGroup("time_seconds", "Group time."), func(s *group.Status) float64 { return float64(s.Time) / 1e9 }},
	{perGroup("buckets", "Buckets held in memory; fresh ones are not kept."), func(s *group.Status) float64 { return float64(s.Buckets) }},
	{perGroup("slots", "Slots held."), func(s *group.Status) float64 { return float64(s.HeldSlots) }},
	{perGroup("log_bytes", "Memory of the raft log."), func(s *group.Status) float64 { return float64(s.LogBytes) }},
}

var counters = []struct {
	desc *prometheus.Desc
	read func(*group.Metrics) uint64
}{
	{perGroup("takes_total", "Requests asked of this replica while it led."), func(m *group.Metrics) uint64 { return m.Takes.Load() }},
	{perGroup("admitted_total", "Requests admitted."), func(m *group.Metrics) uint64 { return m.Admitted.Load() }},
	{perGroup("denied_total", "Requests denied by a committed entry."), func(m *group.Metrics) uint64 { return m.Denied.Load() }},
	{perGroup("denied_uncommitted_total", "Requests denied from the leader's applied state."), func(m *group.Metrics) uint64 { return m.DeniedUncommitted.Load() }},
	{perGroup("repeated_total", "Copies of admitted requests, answered again and not charged."), func(m *group.Metrics) uint64 { return m.Repeated.Load() }},
	{perGroup("refused_total", "Requests judged but refused: too old, not held, full."), func(m *group.Metrics) uint64 { return m.Refused.Load() }},
	{perGroup("busy_total", "Messages refused because the batch being gathered was full; their requests are in ringlimit_queue_refused_total too."), func(m *group.Metrics) uint64 { return m.Busy.Load() }},
	{perGroup("expired_total", "Requests dropped before they were proposed."), func(m *group.Metrics) uint64 { return m.Expired.Load() }},
	{perGroup("outcome_unknown_total", "Requests whose outcome this node could not learn."), func(m *group.Metrics) uint64 { return m.OutcomeUnknown.Load() }},
	{perGroup("entries_total", "Log entries this replica proposed that committed."), func(m *group.Metrics) uint64 { return m.Entries.Load() }},
	{perGroup("entry_requests_total", "Requests in those entries."), func(m *group.Metrics) uint64 { return m.EntryRequests.Load() }},
	{perGroup("entry_bytes_total", "Bytes of those entries."), func(m *group.Metrics) uint64 { return m.EntryBytes.Load() }},
	{perGroup("elections_total", "Times this replica became leader."), func(m *group.Metrics) uint64 { return m.Elections.Load() }},
	{perGroup("transfers_total", "Times this replica handed leadership over."), func(m *group.Metrics) uint64 { return m.Transfers.Load() }},
	{perGroup("snapshots_sent_total", "Table dumps sent to other replicas."), func(m *group.Metrics) uint64 { return m.SnapshotsSent.Load() }},
	{perGroup("snapshots_received_total", "Table dumps received."), func(m *group.Metrics) uint64 { return m.SnapshotsReceived.Load() }},
	{perGroup("stalls_total", "Times the watchdog acted on a commit that hung."), func(m *group.Metrics) uint64 { return m.Stalls.Load() }},
}

var commitSeconds = perGroup("commit_seconds", "From proposing an entry to having applied it.")

func (c *replicaCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range gauges {
		ch <- g.desc
	}
	for _, k := range counters {
		ch <- k.desc
	}
	ch <- commitSeconds
}

func (c *replicaCollector) Collect(ch chan<- prometheus.Metric) {
	v := c.n.view.Load()
	if v == nil {
		return
	}
	for id, r := range v.replicas {
		label := strconv.FormatUint(uint64(id), 10)
		st, m := r.Status(), r.Metrics()
		for _, g := range gauges {
			ch <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.read(&st), label)
		}
		for _, k := range counters {
			ch <- prometheus.MustNewConstMetric(k.desc, prometheus.CounterValue, float64(k.read(m)), label)
		}
		ch <- commitHistogram(&m.Commit, label)
	}
}

func commitHistogram(l *group.Latency, label string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(l.Buckets))
	var total uint64
	for i := range l.Buckets {
		total += l.Buckets[i].Load()
		if bound := l.Bound(i); bound > 0 {
			buckets[bound.Seconds()] = total
		}
	}
	return prometheus.MustNewConstHistogram(commitSeconds, total, float64(l.SumNs.Load())/1e9, buckets, label)
}

package trial

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/policy"
)

// maxRate is the largest rate of policies.yaml, but for probes: tokens a second.
const maxRate = 50

// load is all callers of a scene.
type load struct {
	s       *scene
	whole   context.Context // of the trial: what is under way when the load ends goes on
	ctx     context.Context // of the load
	cancel  context.CancelFunc
	wg      sync.WaitGroup // the callers
	clients []*client.Client
	limits  map[string]check.Limit // of policies
	onLoss  map[string]bucket.Loss
	finish  []func(ctx context.Context)

	mu   sync.Mutex // guards next
	next int        // callers made
}

// startLoad starts every workload. A caller that asks sets its own time limit; only
// the trial's end breaks off what is under way.
func (s *scene) startLoad(ctx context.Context) (*load, error) {
	l := &load{s: s, limits: map[string]check.Limit{}, onLoss: map[string]bucket.Loss{}, whole: ctx}
	l.ctx, l.cancel = context.WithCancel(ctx)
	set, err := policy.Parse("policies.yaml", policies)
	if err != nil {
		return nil, err
	}
	for _, p := range set.Policies {
		l.limits[p.ID], l.onLoss[p.ID] = p.Limit, p.OnStateLoss.Loss()
	}
	for range 4 {
		c, err := client.New(s.fleet.GRPC(), client.NeverDegrade(), client.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		if err != nil {
			l.stop()
			return nil, err
		}
		l.clients = append(l.clients, c)
	}
	s.setup.Limits = map[string]check.Limit{}
	s.setup.OnLoss = map[string]bucket.Loss{}
	s.setup.Changed = map[string]map[uint64]check.Limit{}
	groups, err := s.probes(ctx, l)
	if err != nil {
		l.stop()
		return nil, err
	}
	s.groups = slices.Sorted(maps.Keys(groups))
	l.probe(groups)
	l.budgets(groups)
	l.keyed()
	l.rates()
	l.both()
	if !s.bends() {
		l.seats()
		l.changes()
	}
	return l, nil
}

// bends says whether clocks go wrong in this act: then what counts by time alone is
// left out.
func (s *scene) bends() bool { return s.ground.clock }

// stop ends all callers, waits for them, lets those finish that owe something, and
// closes the clients.
func (l *load) stop() {
	l.cancel()
	l.wg.Wait()
	ctx, cancel := context.WithTimeout(l.whole, time.Minute)
	defer cancel()
	var ending sync.WaitGroup
	for _, f := range l.finish {
		ending.Go(func() { f(ctx) })
	}
	ending.Wait()
	for _, c := range l.clients {
		_ = c.Close()
	}
}

// caller makes a caller of a plan that counts against one policy of the same name. A
// caller without a tenant has a new one for each request: see on.
func (l *load) caller(plan, tenant string) *caller {
	l.mu.Lock()
	l.next++
	n := l.next
	l.mu.Unlock()
	c := &caller{history: l.s.history, number: n, client: l.clients[n%len(l.clients)], plan: plan}
	return l.on(c, tenant)
}

// on is the caller with another tenant.
func (l *load) on(c *caller, tenant string) *caller {
	own := *c
	own.tenant, own.names = tenant, check.Names{c.plan: l.bucket(tenant, c.plan)}
	return &own
}

// bucket names a bucket, and tells the checkers its limit, and what it counts as after a loss.
func (l *load) bucket(counted, policy string) string {
	name := counted + "/" + policy
	if limit, ok := l.limits[policy]; ok {
		l.s.history.mu.Lock()
		l.s.setup.Limits[name], l.s.setup.OnLoss[name] = limit, l.onLoss[policy]
		l.s.history.mu.Unlock()
	}
	return name
}

// every calls work at a pace until the load stops.
func (l *load) every(pace time.Duration, work func(i int)) {
	l.wg.Go(func() {
		for i := 0; waitFor(l.ctx, pace); i++ {
			work(i)
		}
	})
}

// tenant returns a name that nobody has used.
func (l *load) tenant(plan string) string {
	return fmt.Sprintf("%s-%s-%d", plan, l.s.history.run, l.s.history.fresh())
}

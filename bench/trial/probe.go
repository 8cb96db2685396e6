package trial

import (
	"context"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
)

const (
	probePace  = 50 * time.Millisecond
	probeLimit = 10 * time.Second
)

// probes finds a tenant in each group, by looks.
func (s *scene) probes(ctx context.Context, l *load) (tenants map[uint32]string, err error) {
	st, err := s.fleet.Status(ctx)
	if err != nil {
		return nil, err
	}
	tenants = map[uint32]string{}
	for range 1000 {
		t := l.tenant("probe")
		limited, cancel := context.WithTimeout(ctx, readyIn)
		d, err := l.clients[0].Decide(limited, client.Request{Tenant: t, Plan: "probe", Look: true})
		cancel()
		if err != nil {
			return nil, fmt.Errorf("look for a tenant in each group: %w", err)
		}
		if tenants[d.Group] = t; len(tenants) == len(st.GetGroups()) {
			return tenants, nil
		}
	}
	return nil, fmt.Errorf("a thousand tenants fell into %d of %d groups", len(tenants), len(st.GetGroups()))
}

// probe asks every group all the time, whether the last request has its answer or
// not, with much patience: what it waits is what an application would wait.
func (l *load) probe(tenants map[uint32]string) {
	for _, tenant := range tenants {
		c := l.caller("probe", tenant)
		c.probe = true
		l.every(probePace, func(int) {
			l.wg.Go(func() {
				_, _ = c.ask(l.whole, check.Op{Kind: check.Take, Cost: 1}, client.Request{}, probeLimit)
			})
		})
	}
}

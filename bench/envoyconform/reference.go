package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/limiter"
	"github.com/envoyproxy/ratelimit/src/provider"
	"github.com/envoyproxy/ratelimit/src/redis"
	"github.com/envoyproxy/ratelimit/src/server"
	service "github.com/envoyproxy/ratelimit/src/service"
	"github.com/envoyproxy/ratelimit/src/settings"
	"github.com/envoyproxy/ratelimit/src/stats"
	gostats "github.com/lyft/gostats"
	"google.golang.org/grpc/health"
)

// reference is envoyproxy/ratelimit in this process, over a Redis in this process, at
// the time it is told.
type reference struct {
	redis  *miniredis.Miniredis
	client redis.Client
	cache  limiter.RateLimitCache
	stats  stats.Manager
	now    int64 // unix seconds

	service service.RateLimitServiceServer
}

// UnixNow makes it the clock of the service.
func (r *reference) UnixNow() int64 { return r.now }

// newReference starts one; close ends it.
func newReference() (*reference, error) {
	m, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	store := gostats.NewStore(gostats.NewNullSink(), false)
	r := &reference{redis: m, stats: stats.NewStatManager(store, settings.NewSettings())}
	r.client = redis.NewClientImpl(store, false, "", "tcp", "single", m.Addr(), 1, 0, 0, nil, false, nil, 5*time.Second, "", "")
	const nearLimit = 0.8 // it concerns statistics alone
	r.cache = redis.NewFixedRateLimitCacheImpl(r.client, nil, r, nil, 0, nil, nearLimit, "", r.stats, false)
	return r, nil
}

func (r *reference) close() {
	_ = r.client.Close()
	r.redis.Close()
}

// errRefused is a configuration that the reference does not load.
var errRefused = errors.New("the reference refuses the configuration")

// begin takes another configuration and forgets all counters.
func (r *reference) begin(files []string, now int64) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errRefused, p)
		}
	}()
	var loads []config.RateLimitConfigToLoad
	for i, f := range files {
		name := fmt.Sprintf("%d.yaml", i)
		loads = append(loads, config.RateLimitConfigToLoad{Name: name, ConfigYaml: config.ConfigFileContentToYaml(name, f)})
	}
	loaded := config.NewRateLimitConfigImpl(loads, r.stats, false)
	r.redis.FlushAll()
	r.now = now
	given := make(given, 1)
	given <- update{loaded}
	r.service = service.NewService(r.cache, given, r.stats, server.NewHealthChecker(health.NewServer(), "ratelimit", false), r, false, false, false)
	return nil
}

// ask moves the clock, and Redis with it.
func (r *reference) ask(a *ask) (*rls.RateLimitResponse, error) {
	if a.at > r.now {
		r.redis.FastForward(time.Duration(a.at-r.now) * time.Second)
		r.now = a.at
	}
	return r.service.ShouldRateLimit(context.Background(), a.in)
}

// given is a provider of one configuration.
type given chan provider.ConfigUpdateEvent

func (g given) ConfigUpdateEvent() <-chan provider.ConfigUpdateEvent { return g }
func (g given) Stop()                                                {}

type update struct{ config config.RateLimitConfig }

func (u update) GetConfig() (config.RateLimitConfig, any) { return u.config, nil }

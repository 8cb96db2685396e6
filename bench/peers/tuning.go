package main

import (
	"flag"
	"time"

	"github.com/redis/rueidis"
)

// Tuning is what the contenders are set to. The defaults are what measured best on two
// cores; docs/benchmarks.md says beside what.
type Tuning struct {
	Redis     Pipelining `json:"redis"`
	RedisWait Pipelining `json:"redis_wait"`
	// WaitTogether lets all callers share one WAIT, on one connection; RedisWait then
	// says nothing.
	WaitTogether bool `json:"wait_together"`

	// NoBatching makes gubernator's daemons forward each request at once.
	NoBatching bool `json:"no_batching"`

	// OurProcs and GubernatorProcs are GOMAXPROCS of each server; 0: all processors.
	// Three rlnode that share two processors use less CPU time with one each, as
	// docs/benchmarks.md measured.
	OurProcs        int `json:"our_gomaxprocs"`
	GubernatorProcs int `json:"gubernator_gomaxprocs"`
}

// Pipelining is how rueidis sends what its callers ask.
type Pipelining struct {
	Multiplex  int           `json:"multiplex"`      // power of two of connections that all callers share
	FlushDelay time.Duration `json:"flush_delay_ns"` // that a connection waits for more to send; 0: none
}

// best is what measured best.
var best = Tuning{
	Redis: Pipelining{Multiplex: 0, FlushDelay: 20 * time.Microsecond}, RedisWait: Pipelining{Multiplex: 4}, WaitTogether: true,
	OurProcs: 1,
}

// flags makes a flag of each setting.
func (t *Tuning) flags(fs *flag.FlagSet) {
	fs.IntVar(&t.Redis.Multiplex, "multiplex", best.Redis.Multiplex, "redis: `power` of two of connections")
	fs.DurationVar(&t.Redis.FlushDelay, "flush-delay", best.Redis.FlushDelay, "redis: `time` to wait for more to send")
	fs.IntVar(&t.RedisWait.Multiplex, "wait-multiplex", best.RedisWait.Multiplex, "the same for redis-wait")
	fs.DurationVar(&t.RedisWait.FlushDelay, "wait-flush-delay", best.RedisWait.FlushDelay, "the same for redis-wait")
	fs.BoolVar(&t.WaitTogether, "wait-together", best.WaitTogether, "redis-wait: all callers share one WAIT, on one connection")
	fs.BoolVar(&t.NoBatching, "no-batching", best.NoBatching, "gubernator: forward each request at once")
	fs.IntVar(&t.OurProcs, "procs", best.OurProcs, "GOMAXPROCS of each rlnode; 0: all processors")
	fs.IntVar(&t.GubernatorProcs, "gubernator-procs", best.GubernatorProcs, "GOMAXPROCS of each daemon of gubernator; 0: all processors")
}

// valid says whether every setting is one that can be made.
func (t *Tuning) valid() bool {
	for _, p := range []Pipelining{t.Redis, t.RedisWait} {
		if p.Multiplex < 0 || p.Multiplex > rueidis.MaxPipelineMultiplex || p.FlushDelay < 0 {
			return false
		}
	}
	return t.OurProcs >= 0 && t.GubernatorProcs >= 0
}

// procs is GOMAXPROCS of a system's servers.
func (t *Tuning) procs(system string) int {
	switch system {
	case ours3, ours1:
		return t.OurProcs
	case guber:
		return t.GubernatorProcs
	}
	return 0
}

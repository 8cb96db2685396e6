package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
)

// A spender is this program as a client process of its own, so that it can be killed with
// tokens in hand: it takes from one key, and writes a line about each answer before it
// does anything else. It rests until SIGUSR1, and again after SIGUSR2; SIGTERM ends it,
// when it has returned what it holds.

// spenderFlags are for that alone.
type spenderFlags struct {
	nodes string // addresses; empty: this is no spender
	key   key
	began int64 // what its times count from, ns of the machine's calendar: all processes have that one
}

func (s *spenderFlags) register(fs *flag.FlagSet) {
	fs.StringVar(&s.nodes, "spender", "", "be a client process of leased: `addresses` of the nodes; tenant, plan and began are for that alone")
	fs.StringVar(&s.key.tenant, "tenant", "", "")
	fs.StringVar(&s.key.plan, "plan", "", "")
	fs.Int64Var(&s.began, "began", 0, "")
}

func (s *spenderFlags) args() []string {
	b, _ := json.Marshal(s.began)
	return []string{"-spender", s.nodes, "-tenant", s.key.tenant, "-plan", s.key.plan, "-began", string(b)}
}

// How a spender asks: callersOfSpender callers, each for spentAtOnce tokens every
// spendEvery while it is admitted, and less often while it is not.
const (
	callersOfSpender = 4
	spentAtOnce      = 4
	spendEvery       = 12 * time.Millisecond
	deniedFor        = 20 * time.Millisecond
)

// told is a line of a spender: an answer, and what it held and had asked for then. The
// first line is of no answer and says that it is ready.
type told struct {
	Call, Return time.Duration
	Admitted     bool   `json:",omitempty"`
	Leased       bool   `json:",omitempty"` // decided from a lease
	Code         string `json:",omitempty"` // of an error
	Held         int64  // units
	Asked        uint64 // leases
}

// op is what a line says, for the checkers.
func (t *told) op(k key, spender int) check.Op {
	o := check.Op{
		Client: spender, Kind: check.Take, Bucket: k.tenant, Cost: spentAtOnce, Call: t.Call, Return: t.Return,
		Outcome: check.Denied, Passed: t.Admitted, Leased: t.Leased, Code: t.Code,
	}
	switch {
	case t.Admitted:
		o.Outcome = check.Admitted
	case check.NotCharged(t.Code):
		o.Outcome = check.Refused
	case t.Code != "":
		o.Outcome, o.Return = check.Unknown, check.Forever
	}
	return o
}

// spend is the process.
func spend(ctx context.Context, f spenderFlags, w io.Writer) error {
	lib, err := newLibrary(strings.Split(f.nodes, ","))
	if err != nil {
		return err
	}
	defer lib.close()
	orders := make(chan os.Signal, 1)
	signal.Notify(orders, syscall.SIGUSR1, syscall.SIGUSR2)
	var going atomic.Bool
	lines := &lines{out: json.NewEncoder(w)}
	lines.write(&told{})
	var callers sync.WaitGroup
	for range callersOfSpender {
		callers.Go(func() {
			for wait := time.Duration(0); pause(ctx, wait) == nil; {
				if wait = spendEvery; !going.Load() {
					continue
				}
				if t := f.take(lib); !lines.write(&t) || !t.Admitted {
					wait = deniedFor
				}
			}
		})
	}
	for {
		select {
		case s := <-orders:
			going.Store(s == syscall.SIGUSR1)
		case <-ctx.Done():
			callers.Wait()
			return lines.err
		}
	}
}

// take asks once, with the client's own deadline.
func (s *spenderFlags) take(lib library) told {
	t := told{Call: s.now()}
	d, err := lib.Decide(context.Background(), client.Request{Tenant: s.key.tenant, Plan: s.key.plan, Cost: spentAtOnce})
	t.Return = s.now()
	if err != nil {
		t.Code = check.Failed(check.Op{}, err).Code
	} else if d.Degraded {
		t.Code = "degraded" // which it must never be
	}
	t.Admitted, t.Leased = t.Code == "" && d.Allowed, d.Leased
	stats := lib.Stats()
	t.Asked = stats.Leases
	t.Held = max(0, int64(stats.UnitsGranted)-int64(stats.Leased)*spentAtOnce-int64(stats.UnitsReturned)-int64(stats.UnitsExpired))
	return t
}

func (s *spenderFlags) now() time.Duration { return time.Duration(time.Now().UnixNano() - s.began) }

// lines writes one at a time, each in one piece.
type lines struct {
	mu  sync.Mutex // guards what follows
	out *json.Encoder
	err error // the first
}

func (l *lines) write(t *told) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errors.Join(l.err, l.out.Encode(t))
	return l.err == nil
}

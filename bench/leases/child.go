package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/client"
)

// outcome is what one client process did.
type outcome struct {
	Load  load.Report
	Warm  load.Report // before it: counted with it, not measured
	Stats client.Stats
}

// warming is how long a client asks before it is measured: it connects and learns what is
// leased meanwhile, beside all the others that do.
const warming = 500 * time.Millisecond

// child is one client process: it puts its part of the load on the hot key, and prints
// what became of it.
func child(ctx context.Context, o options, w io.Writer) error {
	c, err := client.New(strings.Split(o.child, ","), client.NeverDegrade(), client.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer c.Close()
	l := load.Config{Duration: warming, Concurrency: o.callers, Batch: 1, Keys: 1, Cost: 1, Rate: o.rate, Timeout: 2 * time.Second, TenantPrefix: "hot-"}
	warm, err := load.Run(ctx, c, l)
	if err != nil {
		return err
	}
	l.Duration = o.duration
	r, err := load.Run(ctx, c, l)
	if err != nil {
		return err
	}
	c.Close() // returns what is left, and counts it
	return json.NewEncoder(w).Encode(outcome{r, warm, c.Stats()})
}

// spawn runs the clients, all at once, and returns what each did.
func spawn(ctx context.Context, o options, addrs []string) ([]outcome, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	each, errs := make([]outcome, o.clients), make([]error, o.clients)
	var wg sync.WaitGroup
	for i := range each {
		wg.Go(func() {
			cmd := exec.CommandContext(ctx, self, "-child", strings.Join(addrs, ","), "-callers", strconv.Itoa(o.callers),
				"-duration", o.duration.String(), "-rate", fmt.Sprint(o.rate/float64(o.clients)))
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err == nil {
				err = json.Unmarshal(out, &each[i])
			}
			if err != nil {
				errs[i] = fmt.Errorf("client %d: %w", i, err)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return each, nil
}

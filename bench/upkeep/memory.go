package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// memory is what one node holds, in bytes.
type memory struct {
	rss  float64 // resident, without mapped files
	live float64 // heap after a collection; 0: none was made
}

// memory reads what each node holds. collect makes each collect its garbage
// first, which also tells what is alive; without it nothing is disturbed.
func (b *bench) memory(ctx context.Context, what string, collect bool) ([]memory, error) {
	out := make([]memory, len(b.fleet.Nodes))
	var line []string
	for i, n := range b.fleet.Nodes {
		if collect {
			profile := filepath.Join(b.dir, fmt.Sprintf("heap-%s-%s", n.Name, strings.ReplaceAll(what, " ", "-")))
			if err := collected(ctx, n, profile); err != nil {
				return nil, err
			}
			var err error
			if out[i].live, err = gauge(ctx, n, "go_memstats_heap_alloc_bytes"); err != nil {
				return nil, err
			}
		}
		rss, err := n.Resident()
		if err != nil {
			return nil, err
		}
		out[i].rss = rss
		text := fmt.Sprintf("%s: RSS %.1f", n.Name, rss/1e6)
		if collect {
			text += fmt.Sprintf(", heap %.1f", out[i].live/1e6)
		}
		line = append(line, text)
	}
	b.say("  MB %s: %s", what, strings.Join(line, "; "))
	return out, nil
}

// collected makes a node collect its garbage, and keeps the profile of what is
// alive beside its logs.
func collected(ctx context.Context, n *fleet.Node, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(n.Profile(ctx, "heap?gc=1", f), f.Close())
}

// processors tells what the nodes have used of them since they began, and how
// busy the machine was: without it times say little on a machine that is shared.
func (b *bench) processors(what string) {
	var line []string
	for _, n := range b.fleet.Nodes {
		v, err := gauge(context.Background(), n, "process_cpu_seconds_total")
		if err != nil {
			return
		}
		line = append(line, fmt.Sprintf("%s %.1f", n.Name, v))
	}
	load, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(load), " ")
	b.say("  processor seconds of each node up to the end of the %s: %s; the machine's load average is %s", what, strings.Join(line, ", "), first)
}

// gauge sums a metric of a node over its labels.
func gauge(ctx context.Context, n *fleet.Node, name string) (float64, error) {
	sum, found := 0.0, false
	err := get(ctx, "http://"+n.HTTP+"/metrics", func(line string) {
		key, value, _ := strings.Cut(line, " ")
		if key != name && !strings.HasPrefix(key, name+"{") {
			return
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			sum, found = sum+v, true
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("node %s has no metric %s", n.Name, name)
	}
	return sum, err
}

// get reads a page line by line.
func get(ctx context.Context, url string, line func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		line(s.Text())
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

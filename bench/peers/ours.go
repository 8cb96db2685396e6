package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/client"
)

//go:embed policies.yaml
var policies []byte

// ours is a cluster of three rlnode.
type ours struct{ *fleet.Fleet }

// startOurs starts it with so many groups; 0: one for each node.
func startOurs(ctx context.Context, s Setup, groups int) (System, error) {
	file := filepath.Join(s.Dir, "policies.yaml")
	if err := os.WriteFile(file, policies, 0o644); err != nil {
		return nil, err
	}
	cfg := fleet.Config{Binary: s.Binary, Dir: s.Dir, Policies: file, Flags: []string{"--enable-pprof"}}
	if groups > 0 {
		cfg.Flags = append(cfg.Flags, "--groups", strconv.Itoa(groups))
	}
	if around := s.limited(); around != nil {
		cfg.Wrap = func(int) []string { return around }
	}
	f, err := fleet.Start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return ours{f}, nil
}

func (o ours) Nodes() []*fleet.Node { return o.List() }
func (o ours) Addrs() []string      { return o.GRPC() }

// Held is the live heap of each node.
func (o ours) Held(ctx context.Context) ([]float64, error) {
	var held []float64
	for _, n := range o.List() {
		if err := collect(ctx, n); err != nil {
			return nil, fmt.Errorf("collect the garbage of node %s: %w", n.Name, err)
		}
		heap, err := n.Metric(ctx, "go_memstats_heap_alloc_bytes")
		if err != nil {
			return nil, err
		}
		held = append(held, heap)
	}
	return held, nil
}

// collect makes a node collect its garbage.
func collect(ctx context.Context, n *fleet.Node) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/debug/pprof/heap?gc=1", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// dialOurs is the target behind our client.
func dialOurs(j *Job, t *Traffic) (load.Target, func(), error) {
	c, err := client.New(j.Addrs, client.NeverDegrade(), client.WithDefaultTimeout(callLimit))
	if err != nil {
		return nil, nil, err
	}
	request := func(i int64) client.Request {
		a := t.at(i)
		r := client.Request{Tenant: a.name(), Plan: "wide"}
		if a.Spent {
			r.Plan = "spent"
		}
		return r
	}
	return load.Cluster(c, request), func() { _ = c.Close() }, nil
}

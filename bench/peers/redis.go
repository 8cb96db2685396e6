package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// redisServer is Redis with one replica, without files.
type redisServer struct {
	processes
	addrs []string // the primary's first
}

// errNoRedis tells what to install.
var errNoRedis = errors.New("redis-server is not here: install Debian's package of that name (apt-get install redis-server)")

// startRedis starts both and waits until the replica follows.
func startRedis(ctx context.Context, s Setup) (System, error) {
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errNoRedis
	}
	ports, err := fleet.FreePorts(2)
	if err != nil {
		return nil, err
	}
	r := &redisServer{}
	for i, name := range []string{"primary", "replica"} {
		args := []string{
			binary, "--bind", "127.0.0.1", "--port", strconv.Itoa(ports[i]), "--dir", s.Dir,
			"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
		}
		if i > 0 {
			args = append(args, "--replicaof", "127.0.0.1 "+strconv.Itoa(ports[0]))
		}
		if err := r.run(s.Dir, name, nil, args); err != nil {
			r.Close()
			return nil, err
		}
		r.addrs = append(r.addrs, "127.0.0.1:"+strconv.Itoa(ports[i]))
	}
	if err := until(ctx, func() error { return r.follows(ctx) }); err != nil {
		r.Close()
		return nil, fmt.Errorf("redis with a replica (logs in %s): %w", s.Dir, err)
	}
	return r, nil
}

// follows says why the replica does not follow the primary.
func (r *redisServer) follows(ctx context.Context) error {
	state, err := info(ctx, r.addrs[1], "replication", "master_link_status")
	if err == nil && state != "up" {
		err = fmt.Errorf("the replica's link is %s", state)
	}
	return err
}

// Addrs is the primary's alone: clients ask nobody else.
func (r *redisServer) Addrs() []string { return r.addrs[:1] }

// Held is used_memory of each server.
func (r *redisServer) Held(ctx context.Context) ([]float64, error) {
	var held []float64
	for _, addr := range r.addrs {
		used, err := info(ctx, addr, "memory", "used_memory")
		if err != nil {
			return nil, err
		}
		v, err := strconv.ParseFloat(used, 64)
		if err != nil {
			return nil, fmt.Errorf("used_memory of %s: %w", addr, err)
		}
		held = append(held, v)
	}
	return held, nil
}

// info reads one field of a section of INFO.
func info(ctx context.Context, addr, section, field string) (string, error) {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		return "", err
	}
	defer c.Close()
	text, err := c.Do(ctx, c.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == field {
			return value, nil
		}
	}
	return "", fmt.Errorf("INFO %s of %s has no %s", section, addr, field)
}

//go:build !nogubernator

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gubernator-io/gubernator/v2"
	"github.com/sirupsen/logrus"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// gubernators are three daemons, each a process of this program. A key has one owner
// among them, and no copy.
type gubernators struct {
	processes
	addrs []string
}

// startGubernator starts them and waits until each knows all.
func startGubernator(ctx context.Context, s Setup) (System, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	const daemons = 3
	ports, err := fleet.FreePorts(2 * daemons)
	if err != nil {
		return nil, err
	}
	g := &gubernators{}
	for _, p := range ports[:daemons] {
		g.addrs = append(g.addrs, "127.0.0.1:"+strconv.Itoa(p))
	}
	for i, addr := range g.addrs {
		args := []string{
			self, daemonCommand, "-grpc", addr, "-http", "127.0.0.1:" + strconv.Itoa(ports[daemons+i]),
			"-peers", strings.Join(g.addrs, ","), "-cache", strconv.Itoa(2*s.Keys + abusers),
		}
		if err := g.run(s.Dir, fmt.Sprint("daemon", i+1), s.limited(), args); err != nil {
			g.Close()
			return nil, err
		}
	}
	for _, addr := range g.addrs {
		if err := until(ctx, func() error { return knowsAll(ctx, addr, daemons) }); err != nil {
			g.Close()
			return nil, fmt.Errorf("gubernator (logs in %s): %w", s.Dir, err)
		}
	}
	return g, nil
}

// knowsAll asks a daemon for its health.
func knowsAll(ctx context.Context, addr string, daemons int32) error {
	c, closed, err := dialDaemon(addr)
	if err != nil {
		return err
	}
	defer closed()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	h, err := c.HealthCheck(ctx, &gubernator.HealthCheckReq{})
	if err == nil && (h.GetStatus() != "healthy" || h.GetPeerCount() != daemons) {
		err = fmt.Errorf("daemon %s is %s and knows %d peers: %s", addr, h.GetStatus(), h.GetPeerCount(), h.GetMessage())
	}
	return err
}

func (g *gubernators) Addrs() []string { return g.addrs }

// Held is not known: the daemons tell none of it.
func (g *gubernators) Held(context.Context) ([]float64, error) { return nil, nil }

// daemon runs one until it is told to end.
func daemon(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet(daemonCommand, flag.ContinueOnError)
	grpc := fs.String("grpc", "", "`address` to listen on")
	http := fs.String("http", "", "`address` of the gateway")
	peers := fs.String("peers", "", "`addresses` of all daemons")
	cache := fs.Int("cache", 50_000, "`buckets` it may hold")
	if err := fs.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, os.Interrupt)
	defer stop()
	log := logrus.New()
	log.SetOutput(io.Discard)
	started, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	d, err := gubernator.SpawnDaemon(started, gubernator.DaemonConfig{
		GRPCListenAddress: *grpc, HTTPListenAddress: *http, AdvertiseAddress: *grpc, InstanceID: *grpc,
		CacheSize: *cache, PeerDiscoveryType: "none", Logger: logrus.NewEntry(log),
		Behaviors: gubernator.BehaviorConfig{BatchTimeout: callLimit},
	})
	if err != nil {
		return err
	}
	var all []gubernator.PeerInfo
	for addr := range strings.SplitSeq(*peers, ",") {
		all = append(all, gubernator.PeerInfo{GRPCAddress: addr, IsOwner: addr == *grpc})
	}
	d.SetPeers(all)
	<-ctx.Done()
	d.Close()
	return nil
}

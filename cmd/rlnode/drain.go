package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// drainPoll is how often a waiting drain asks how far it is.
const drainPoll = 300 * time.Millisecond

func drainCommand() *cobra.Command {
	var addrs nodes
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Move everything away from a node and let it leave",
		Long: "drain moves a node's slots, replicas and control vote to the other nodes and waits until it has left; its process then\n" +
			"ends by itself with exit code 0. A supervisor must not start it again: started again it joins again, as a new node.\n" +
			"It says how far it is on stderr. Interrupting the command does not stop the drain: the same command waits for it again,\n" +
			"and rlnode undrain lets the node stay.",
		Args: oneArg("node name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			d := drain{node: args[0], addrs: addrs, out: cmd.OutOrStdout(), progress: cmd.ErrOrStderr()}
			err := d.run(ctx)
			if err != nil && ctx.Err() != nil && d.begun {
				fmt.Fprintf(cmd.ErrOrStderr(), "interrupted: %s goes on draining; `rlnode drain %[1]s` waits for it again, `rlnode undrain %[1]s` ends it\n", d.node)
				return exitCode(exitError)
			}
			return err
		},
	}
	addrFlag(cmd, &addrs)
	return cmd
}

// drain is one run of the command.
type drain struct {
	node          string
	addrs         nodes // grows by those of nodes that are met: the first may be that of the node that leaves
	out, progress io.Writer
	begun         bool
	index         uint64 // of the control log where it began
	said          string
}

func (d *drain) run(ctx context.Context) error {
	r, err := ask(ctx, d.addrs, changing, func(ctx context.Context, c *grpc.ClientConn) (*pb.DrainResponse, error) {
		return pb.NewClusterClient(c).Drain(ctx, &pb.DrainRequest{Node: d.node})
	})
	if err != nil {
		return err
	}
	d.begun, d.index = true, r.GetIndex()
	printWarnings(d.progress, r.GetWarnings())
	if r.GetAlready() {
		fmt.Fprintf(d.progress, "%s is draining already: waiting for it\n", d.node)
	}
	var silent time.Time // since when nobody answers
	for {
		gone, err := d.look(ctx)
		switch {
		case gone:
			fmt.Fprintf(d.out, "%s has left\n", d.node)
			return nil
		case err == nil:
			silent = time.Time{}
		case errors.Is(err, errStays):
			return err
		case silent.IsZero():
			silent = time.Now()
		case time.Since(silent) > time.Minute:
			return fmt.Errorf("%s goes on draining, but no node tells how far it is: %w", d.node, err)
		}
		select {
		case <-time.After(drainPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errStays is returned when the node is there and not draining any more.
var errStays = errors.New("it is not draining any more: somebody has let it stay")

// look asks how far the drain is and says so when that has changed.
func (d *drain) look(ctx context.Context) (gone bool, err error) {
	r, err := ask(ctx, d.addrs, reading, func(ctx context.Context, c *grpc.ClientConn) (*pb.StatusResponse, error) {
		return pb.NewClusterClient(c).Status(ctx, &pb.StatusRequest{})
	})
	if err != nil || r.GetIndex() < d.index {
		return false, err // that node has not heard of the drain yet
	}
	gone = true
	for _, n := range r.GetNodes() {
		if n.GetName() != d.node {
			if a := n.GetGrpc(); a != "" && !slices.Contains(d.addrs.addrs, a) {
				d.addrs.addrs = append(d.addrs.addrs, a)
			}
			continue
		}
		gone = false
		if !n.GetDraining() {
			return false, fmt.Errorf("%s: %w", d.node, errStays)
		}
		d.say(n)
	}
	return gone, nil
}

func (d *drain) say(n *pb.NodeStatus) {
	text := n.GetProgress()
	if n.GetState() == "dead" {
		text += "; the node does not answer"
	}
	if text != d.said {
		fmt.Fprintf(d.progress, "%s: %s\n", d.node, text)
		d.said = text
	}
}

func undrainCommand() *cobra.Command {
	var addrs nodes
	cmd := &cobra.Command{
		Use:   "undrain NODE",
		Short: "Let a draining node stay",
		Long:  "undrain ends a drain that is under way. What has moved away from the node comes back to it as to one that has joined.",
		Args:  oneArg("node name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := ask(cmd.Context(), addrs, changing, func(ctx context.Context, c *grpc.ClientConn) (*pb.UndrainResponse, error) {
				return pb.NewClusterClient(c).Undrain(ctx, &pb.UndrainRequest{Node: args[0]})
			})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s stays\n", args[0])
			}
			return err
		},
	}
	addrFlag(cmd, &addrs)
	return cmd
}

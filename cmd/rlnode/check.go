package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/client"
)

type checkOptions struct {
	addrs   nodes
	subject subjectOptions
	cost    int64
	costs   []string
	explain bool
	timeout time.Duration
	output  string
}

func checkCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Take from the limits of one request; exit code 3 if it is denied",
		Long: "check asks the cluster for one decision. --cost 0 looks without spending. It never degrades: an answer that the\n" +
			"cluster did not give is an error, exit code 1. --explain also tells which policies matched and why, and what each\n" +
			"bucket held before.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd.Context(), cmd.OutOrStdout(), &o) },
	}
	f := cmd.Flags()
	addrFlag(cmd, &o.addrs)
	o.subject.register(cmd)
	f.Int64Var(&o.cost, "cost", 1, "tokens to take; 0 looks")
	f.StringArrayVar(&o.costs, "cost-of", nil, "tokens to take by one policy, `POLICY=N`; may be given several times")
	f.BoolVar(&o.explain, "explain", false, "tell which policies matched, and why the others did not")
	f.DurationVar(&o.timeout, "timeout", 2*time.Second, "how long to try")
	outputFlag(cmd, &o.output, "text")
	return cmd
}

func outputFlag(cmd *cobra.Command, output *string, text string) {
	cmd.Flags().StringVarP(output, "output", "o", text, text+" or json")
}

func checkOutput(output, text string) error {
	if output != text && output != "json" {
		return usageError{fmt.Errorf("-o %q: want %s or json", output, text)}
	}
	return nil
}

// request is the subject with its costs.
func (o *checkOptions) request() (client.Request, error) {
	r, err := o.subject.request()
	if err != nil {
		return r, err
	}
	r.Cost, r.Look = o.cost, o.cost == 0
	costs, err := pairs("--cost-of", o.costs)
	if err != nil {
		return r, err
	}
	for id, text := range costs {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return r, usageError{fmt.Errorf("--cost-of %s=%s: want a whole number", id, text)}
		}
		if r.Costs == nil {
			r.Costs = make(map[string]int64, len(costs))
		}
		r.Costs[id] = n
	}
	return r, nil
}

func check(ctx context.Context, out io.Writer, o *checkOptions) error {
	if err := checkOutput(o.output, "text"); err != nil {
		return err
	}
	if o.timeout <= 0 {
		return usageError{fmt.Errorf("--timeout %s: want more than 0", o.timeout)}
	}
	req, err := o.request()
	if err != nil {
		return err
	}
	c, err := newClient(o.addrs)
	if err != nil {
		return usageError{err}
	}
	defer c.Close()
	var before *pb.ExplainResponse
	if o.explain {
		if before, err = explain(ctx, o.addrs, &req); err != nil {
			return told(err)
		}
	}
	ctx, cancel := within(ctx, o.timeout)
	defer cancel()
	d, err := decide(ctx, c, req)
	if err != nil {
		return told(err)
	}
	if d.Degraded {
		return fmt.Errorf("no bucket was asked: the cap on buckets is reached and this key is new, so that the failure mode of policy %s "+
			"decided (allowed: %t); see --max-buckets and --max-buckets-per-tenant of rlnode serve", d.PolicyID, d.Allowed)
	}
	if err := printDecision(out, &d, before, o.output); err != nil {
		return err
	}
	if !d.Allowed {
		return exitCode(exitDenied)
	}
	return nil
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/bench/load"
	"github.com/ringlimit/ringlimit/client"
)

func benchCommand() *cobra.Command {
	var (
		addrs  nodes
		output string
		cfg    load.Config
	)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Put load on a cluster through the Go client and measure it",
		Long: "bench asks for decisions: key i is the tenant PREFIX+i with no other attribute. Without --rate each of --concurrency\n" +
			"callers asks again once it is answered; with --rate calls start when they are due, and a late start counts as latency.\n" +
			"It never degrades. Exit code 1 if any request ended in an error.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text"); err != nil {
				return err
			}
			if cfg.Requests > 0 && !cmd.Flags().Changed("duration") {
				cfg.Duration = 0
			}
			if err := cfg.Validate(); err != nil {
				return usageError{err}
			}
			if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
				cfg.Progress = os.Stderr
			}
			c, err := newClient(addrs, client.WithDefaultTimeout(cfg.Timeout))
			if err != nil {
				return usageError{err}
			}
			defer c.Close()
			r, err := load.Run(cmd.Context(), c, cfg)
			if err != nil {
				return err
			}
			if err := printReport(cmd.OutOrStdout(), &r, output); err != nil {
				return err
			}
			if r.Errors > 0 {
				return fmt.Errorf("%d of %d requests failed, the first with: %s", r.Errors, r.Requests, r.Error)
			}
			return nil
		},
	}
	f := cmd.Flags()
	addrFlag(cmd, &addrs)
	f.DurationVar(&cfg.Duration, "duration", 10*time.Second, "how long; without a bound if --requests is given")
	f.Int64Var(&cfg.Requests, "requests", 0, "decisions to ask for in all, `N`")
	f.IntVar(&cfg.Concurrency, "concurrency", 64, "callers, `C`")
	f.IntVar(&cfg.Batch, "batch", 1, "decisions per call, `B`")
	f.IntVar(&cfg.Keys, "keys", 10000, "number of keys, `K`")
	f.Int64Var(&cfg.Cost, "cost", 1, "tokens each takes; 0 looks")
	f.Float64Var(&cfg.Rate, "rate", 0, "open loop at `R` decisions a second; 0: closed loop")
	f.DurationVar(&cfg.Timeout, "timeout", 2*time.Second, "deadline of each call")
	f.StringVar(&cfg.TenantPrefix, "tenant-prefix", "bench-", "tenants are `PREFIX` and a number")
	outputFlag(cmd, &output, "text")
	return cmd
}

func printReport(out io.Writer, r *load.Report, output string) error {
	if output == "json" {
		return json.NewEncoder(out).Encode(r)
	}
	us := func(v int64) time.Duration { return time.Duration(v) * time.Microsecond }
	_, err := fmt.Fprintf(out, "%d requests in %.2f s: %.0f decisions/s\n%d admitted, %d denied, %d errors\np50 %s  p99 %s  p99.9 %s  max %s\n",
		r.Requests, r.Seconds, r.Rate, r.Admitted, r.Denied, r.Errors, us(r.P50), us(r.P99), us(r.P999), us(r.Max))
	return err
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/cmd/rlnode/simulate"
)

func simulateCommand() *cobra.Command {
	var policies, trace, output string
	cmd := &cobra.Command{
		Use:   "simulate --policies FILE --trace FILE",
		Short: "Tell what a policy file would do to recorded traffic, offline",
		Long: "simulate decides the requests of a trace, one JSON object a line, times in seconds, not decreasing:\n" +
			`  {"t":"59.01","cost":1,"request":{"tenant":"acme","route":"GET:/v1/items","principals":[{"type":"ip","id":"10.0.0.1"}]}}` + "\n" +
			"Windows start at t = 0, so that results can be worked out by hand; in a cluster they are shifted by each key's hash.\n" +
			"Permits of concurrency limits are held until their time is up.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case output != "ndjson" && output != "summary":
				return usageError{fmt.Errorf("-o %q: want ndjson or summary", output)}
			case policies == "" || trace == "":
				return usageError{errors.New("want both --policies FILE and --trace FILE")}
			}
			return runSimulation(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), policies, trace, output == "summary")
		},
	}
	f := cmd.Flags()
	f.StringVar(&policies, "policies", "", "policy `FILE`")
	f.StringVar(&trace, "trace", "", "trace `FILE`; - is standard input")
	f.StringVarP(&output, "output", "o", "ndjson", "ndjson: a line for each request; or summary: a table by policy")
	return cmd
}

func runSimulation(ctx context.Context, stdin io.Reader, stdout io.Writer, policies, trace string, summarize bool) error {
	set, err := readPolicies(policies)
	if err != nil {
		return err
	}
	in := stdin
	if trace != "-" {
		file, err := os.Open(trace)
		if err != nil {
			return fmt.Errorf("--trace: %w", err)
		}
		defer file.Close()
		in = file
	}
	s, err := simulate.New(set)
	if err != nil {
		return err
	}
	var summary simulate.Summary
	out := bufio.NewWriterSize(stdout, 64<<10)
	add := func(e *simulate.Event, o *simulate.Outcome) error {
		if summarize {
			summary.Add(o)
			return nil
		}
		_, err := out.Write(o.AppendJSON(out.AvailableBuffer(), e))
		return err
	}
	err = s.Run(ctx, simulate.NewTrace(trace, in), add)
	if err == nil && summarize {
		_, err = summary.WriteTo(out)
	}
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	return err
}

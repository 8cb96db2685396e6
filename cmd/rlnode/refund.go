package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/client"
)

type refundOptions struct {
	addrs   nodes
	subject subjectOptions
	cost    int64
	timeout time.Duration
	output  string
}

func refundCommand() *cobra.Command {
	var o refundOptions
	cmd := &cobra.Command{
		Use:   "refund --request-id ID",
		Short: "Give back what a decision took, once",
		Long: "refund gives back what the decision under --request-id took: once, at most what was taken. Give the same attributes\n" +
			"as in the decision; they say where it was made. If there is nothing to give back it says so, and a copy of the\n" +
			"request that comes later is refused. Window algorithms credit only the window that was charged.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return refund(cmd.Context(), cmd.OutOrStdout(), &o) },
	}
	addrFlag(cmd, &o.addrs)
	o.subject.register(cmd)
	cmd.Flags().Int64Var(&o.cost, "cost", 0, "at most this much of each limit; 0: all that was taken")
	cmd.Flags().DurationVar(&o.timeout, "timeout", 2*time.Second, "how long to try")
	outputFlag(cmd, &o.output, "text")
	return cmd
}

func refund(ctx context.Context, out io.Writer, o *refundOptions) error {
	if err := checkOutput(o.output, "text"); err != nil {
		return err
	}
	req, err := o.subject.request()
	if err != nil {
		return err
	}
	if req.RequestID == "" {
		return usageError{errors.New("--request-id is missing: want the id of the decision")}
	}
	c, err := newClient(o.addrs)
	if err != nil {
		return usageError{err}
	}
	defer c.Close()
	ctx, cancel := within(ctx, o.timeout)
	defer cancel()
	refunded, limits, err := c.Refund(ctx, req, o.cost)
	if err != nil {
		return told(err)
	}
	return printRefund(out, refunded, limits, o.output)
}

func printRefund(out io.Writer, refunded bool, limits []client.Answer, output string) error {
	if output == "json" {
		return json.NewEncoder(out).Encode(struct {
			Refunded bool        `json:"refunded"`
			Limits   []limitJSON `json:"limits"`
		}{refunded, limitsJSON(limits)})
	}
	if !refunded {
		_, err := fmt.Fprintln(out, "nothing to refund: nothing was taken under this id, or it was given back before")
		return err
	}
	fmt.Fprintln(out, "refunded")
	for _, l := range limits {
		if _, err := fmt.Fprintf(out, "%s (version %d): %d of %d left\n", l.PolicyID, l.PolicyVersion, l.Remaining, l.Limit); err != nil {
			return err
		}
	}
	return nil
}

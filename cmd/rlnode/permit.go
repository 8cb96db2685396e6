package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/client"
)

type permitOptions struct {
	addrs   nodes
	subject subjectOptions
	timeout time.Duration
	output  string
}

// permitAnswer is what became of a permit. Left is how long it still holds.
type permitAnswer struct {
	Held bool          `json:"held"`
	Left time.Duration `json:"expires_after_ns,omitempty"`
}

func permitCommand() *cobra.Command {
	return parent("permit", "Release or renew a permit of a concurrency limit",
		permitVerb("release ID", "Free a permit before its time is up",
			"release frees the permit that a decision granted. A permit that has ended already frees nobody else's; that is said\n"+
				"and no error.",
			func(ctx context.Context, c *client.Client, r client.Request, id string) (a permitAnswer, err error) {
				a.Held, err = c.Release(ctx, r, id)
				return a, err
			}, false),
		permitVerb("renew ID", "Give a permit its full time again; exit code 3 if it had ended",
			"renew lets a permit hold for the policy's window from now. One that has ended cannot be renewed: whoever relied on it\n"+
				"must stop. The exit code is 3 then.",
			func(ctx context.Context, c *client.Client, r client.Request, id string) (a permitAnswer, err error) {
				a.Left, a.Held, err = c.Renew(ctx, r, id)
				return a, err
			}, true))
}

// permitVerb is a command on one permit; must says that one that has ended is
// no success.
func permitVerb(use, short, long string, do func(context.Context, *client.Client, client.Request, string) (permitAnswer, error), must bool) *cobra.Command {
	var o permitOptions
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: oneArg("permit id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(o.output, "text"); err != nil {
				return err
			}
			req, err := o.subject.request()
			if err != nil {
				return err
			}
			c, err := newClient(o.addrs)
			if err != nil {
				return usageError{err}
			}
			defer c.Close()
			ctx, cancel := within(cmd.Context(), o.timeout)
			defer cancel()
			a, err := do(ctx, c, req, args[0])
			if err != nil {
				return told(err)
			}
			if err := printPermit(cmd.OutOrStdout(), a, o.output); err != nil {
				return err
			}
			if must && !a.Held {
				return exitCode(exitDenied)
			}
			return nil
		},
	}
	addrFlag(cmd, &o.addrs)
	o.subject.register(cmd)
	cmd.Flags().DurationVar(&o.timeout, "timeout", 2*time.Second, "how long to try")
	outputFlag(cmd, &o.output, "text")
	return cmd
}

func printPermit(out io.Writer, a permitAnswer, output string) error {
	if output == "json" {
		return json.NewEncoder(out).Encode(a)
	}
	text := "it had ended already"
	switch {
	case a.Held && a.Left > 0:
		text = "held for " + a.Left.String() + " more"
	case a.Held:
		text = "released"
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

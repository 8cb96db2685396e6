// Command rlnode is a node of a ringlimit cluster, and the tool to talk to one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// The exit codes that scripts rely on.
const (
	exitError     = 1
	exitUsage     = 2
	exitDenied    = 3
	exitUnhealthy = 4
)

// exitCode ends the program with a code after the command has said all there is to say.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a wrong flag or argument.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// run executes one command line and returns its exit code. Answers go to stdout,
// diagnostics to stderr.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var code exitCode
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "rlnode: %v\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "rlnode: %v\n", err)
		return exitError
	}
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "rlnode",
		Short: "A rate limiter that runs as a cluster of its own",
		Long: "rlnode runs a node of a ringlimit cluster (serve, dev) and talks to one (check, status, members, remove, bench).\n" +
			"Every flag can also be given as RLNODE_<FLAG> in the environment or as a key of a YAML file named by --config;\n" +
			"a flag wins over the environment, the environment over the file.",
		Version:      version(),
		SilenceUsage: true, SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("no command %q; see rlnode --help", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			cmd.SetOut(cmd.ErrOrStderr())
			_ = cmd.Help()
			return exitCode(exitUsage)
		},
	}
	root.PersistentFlags().String("config", "", "YAML `FILE` with values for flags")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return settle(cmd.Flags()) }
	root.AddCommand(serveCommand(), devCommand(), checkCommand(), statusCommand(), membersCommand(),
		removeCommand(), benchCommand(), versionCommand())
	return root
}

// noArgs refuses arguments as wrong usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return nil
}

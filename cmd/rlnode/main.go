// Command rlnode is a node of a ringlimit cluster, and the tool to talk to one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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
		Long: "rlnode runs a node of a ringlimit cluster (serve, dev) and talks to one (check, refund, status,\n" +
			"policy, override, members, backup, drain, remove, bench). simulate and tls need no cluster.\n" +
			"Every flag can also be given as RLNODE_<FLAG> in the environment or as a key of a YAML file named by --config;\n" +
			"a flag wins over the environment, the environment over the file.",
		Version:      version(),
		SilenceUsage: true, SilenceErrors: true,
		Args: noCommand,
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
	root.AddCommand(serveCommand(), devCommand(), checkCommand(), refundCommand(), permitCommand(), statusCommand(), policyCommand(),
		overrideCommand(), membersCommand(), backupCommand(), drainCommand(), undrainCommand(), removeCommand(), simulateCommand(), benchCommand(), tlsCommand(), versionCommand())
	return root
}

// parent is a command that only groups others.
func parent(use, short string, children ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: noCommand}
	cmd.AddCommand(children...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var names []string
		for _, c := range cmd.Commands() {
			names = append(names, c.Name())
		}
		return usageError{fmt.Errorf("%s wants one of %s; see %s --help", cmd.CommandPath(), strings.Join(names, ", "), cmd.CommandPath())}
	}
	return cmd
}

// noCommand refuses a word that is no command of this one.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("no command %q; see %s --help", args[0], cmd.CommandPath())}
	}
	return nil
}

// oneArg wants exactly one argument.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{fmt.Errorf("%s takes one %s, not %d", cmd.CommandPath(), what, len(args))}
		}
		return nil
	}
}

// noArgs refuses arguments as wrong usage.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no argument %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return nil
}

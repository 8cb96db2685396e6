package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy/envoyimport"
)

func policyImportCommand() *cobra.Command {
	return parent("import", "Turn the configuration of another limiter into policies; needs no cluster", policyImportEnvoyCommand())
}

func policyImportEnvoyCommand() *cobra.Command {
	var algorithm string
	cmd := &cobra.Command{
		Use:   "envoy FILE...",
		Short: "Turn configuration of envoyproxy/ratelimit into a policy file",
		Long: "envoy prints a policy file that answers the descriptors of Envoy as the files say, and each difference on standard error;\n" +
			"docs/envoy.md explains them. - is standard input. Try the policies with policy diff and simulate before you put them.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("FILE is missing: want configuration of envoyproxy/ratelimit")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			a, ok := bucket.ParseAlgorithm(algorithm)
			if !ok || a == bucket.LeakyBucket || a == bucket.Concurrency {
				return usageError{fmt.Errorf("--algorithm %q: want sliding_window, sliding_log, token_bucket or fixed_window", algorithm)}
			}
			files, err := filesOf(cmd.InOrStdin(), args)
			if err != nil {
				return err
			}
			r, err := envoyimport.Import(files, envoyimport.Options{Algorithm: a})
			if err != nil {
				return err
			}
			for _, n := range r.Notes {
				fmt.Fprintln(cmd.ErrOrStderr(), "difference:", n)
			}
			_, err = cmd.OutOrStdout().Write(r.YAML)
			return err
		},
	}
	cmd.Flags().StringVar(&algorithm, "algorithm", bucket.SlidingWindow.String(),
		"`NAME` of what counts: sliding_window, sliding_log, token_bucket, or fixed_window, which lets twice the amount pass around an edge")
	return cmd
}

// filesOf reads the files of an import.
func filesOf(stdin io.Reader, paths []string) ([]envoyimport.File, error) {
	files := make([]envoyimport.File, len(paths))
	for i, path := range paths {
		var err error
		files[i].Name = nameOf(path)
		if path == "-" {
			files[i].Data, err = io.ReadAll(stdin)
		} else {
			files[i].Data, err = os.ReadFile(path)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

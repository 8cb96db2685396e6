package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

func policyValidateCommand() *cobra.Command {
	var addrs nodes
	var file, output string
	cmd := &cobra.Command{
		Use:   "validate -f FILE",
		Short: "Say what is wrong in a policy file, with line and column; needs no cluster",
		Long: "validate judges a file by itself. With --addr it also asks the cluster whether it would take the file, which depends\n" +
			"on its home and on the policies it has.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text"); err != nil {
				return err
			}
			set, slips, data, err := readFile(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			printWarnings(cmd.ErrOrStderr(), slips)
			if cmd.Flags().Changed("addr") {
				if _, err := diffWithCluster(cmd.Context(), addrs, &pb.PutFileRequest{Name: nameOf(file)}, data); err != nil {
					return err
				}
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
					Policies int      `json:"policies"`
					Valid    bool     `json:"valid"`
					Warnings []string `json:"warnings,omitempty"`
				}{len(set.Policies), true, slips})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %s\n", nameOf(file), amount(len(set.Policies), "policy", "policies"))
			return err
		},
	}
	addrFlag(cmd, &addrs)
	fileFlag(cmd, &file)
	outputFlag(cmd, &output, "text")
	return cmd
}

func policyDiffCommand() *cobra.Command {
	var addrs nodes
	var file, against, output string
	var prune bool
	cmd := &cobra.Command{
		Use:   "diff -f FILE",
		Short: "Tell what putting a file would change",
		Long: "diff compares a file with the policies of the cluster, or, without a cluster, with those of another file. Policies\n" +
			"that the file does not have count as deleted with --prune only, as in put.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text"); err != nil {
				return err
			}
			data, err := readBytes(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			var set *policy.Set
			if against != "" || len(data) <= judgedHere {
				if set, err = policy.Parse(nameOf(file), data); err != nil {
					return err
				}
			}
			var r *pb.DiffResponse
			if against != "" {
				r, err = diffWithFile(against, set, prune)
			} else {
				r, err = diffWithCluster(cmd.Context(), addrs, &pb.PutFileRequest{Name: nameOf(file), Prune: prune}, data)
			}
			if err != nil {
				return err
			}
			return printDiff(cmd.OutOrStdout(), r, output)
		},
	}
	addrFlag(cmd, &addrs)
	fileFlag(cmd, &file)
	cmd.Flags().StringVar(&against, "against", "", "another `FILE` instead of the cluster")
	cmd.Flags().BoolVar(&prune, "prune", false, "policies that the file does not have are deleted")
	outputFlag(cmd, &output, "text")
	return cmd
}

func diffWithCluster(ctx context.Context, addrs nodes, first *pb.PutFileRequest, file []byte) (*pb.DiffResponse, error) {
	return ask(ctx, addrs, judging, func(ctx context.Context, c *grpc.ClientConn) (*pb.DiffResponse, error) {
		g, err := pb.NewPoliciesClient(c).Diff(ctx)
		if err != nil {
			return nil, err
		}
		return upload(g, &pb.PutFileRequest{Name: first.GetName(), Prune: first.GetPrune()}, file)
	})
}

func diffWithFile(path string, next *policy.Set, prune bool) (*pb.DiffResponse, error) {
	old, err := readPolicies(path)
	if err != nil {
		return nil, err
	}
	if err := policy.CheckPut(old, next, prune); err != nil {
		return nil, err
	}
	changes := policy.Diff(old, next)
	if !prune {
		changes = slices.DeleteFunc(changes, func(c policy.Change) bool { return c.Kind == policy.Removed })
	}
	body, err := json.Marshal(append([]policy.Change{}, changes...))
	if err != nil {
		return nil, err
	}
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = c.String()
	}
	return &pb.DiffResponse{ChangesJson: body, Text: strings.Join(lines, "\n")}, nil
}

func printDiff(out io.Writer, r *pb.DiffResponse, output string) error {
	text := strings.TrimRight(r.GetText(), "\n")
	switch {
	case output == "json":
		text = string(r.GetChangesJson())
	case text == "":
		text = "nothing would change"
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

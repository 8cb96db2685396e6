package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

func policyCommand() *cobra.Command {
	return parent("policy", "Tell and change the policies of a cluster",
		policyListCommand(), policyGetCommand(), policyPutCommand(), policyDeleteCommand(), policyHistoryCommand(),
		policyRollbackCommand(), policyDiffCommand(), policyValidateCommand(), policyAuditCommand(), policyImportCommand())
}

func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "file", "f", "", "policy `FILE`, YAML; - is standard input")
}

// ifMatchFlag says on what a change depends, such as "this is the present version".
func ifMatchFlag(cmd *cobra.Command, text *string, unless string) {
	cmd.Flags().StringVar(text, "if-match", "", "change nothing unless "+unless+", `V` such as 811 or policy-version-811")
}

// etagPrefix begins a version as HTTP writes it.
const etagPrefix = "policy-version-"

// ifMatch reads a version, plain or as an ETag; nil: any.
func ifMatch(text string) (*uint64, error) {
	if text == "" {
		return nil, nil
	}
	v, err := strconv.ParseUint(strings.TrimPrefix(strings.Trim(text, `"`), etagPrefix), 10, 64)
	if err != nil {
		return nil, usageError{fmt.Errorf("--if-match %q: want a version such as 811 or %s811", text, etagPrefix)}
	}
	return &v, nil
}

// readFile reads what -f names and judges it before anybody else does.
func readFile(stdin io.Reader, path string) (set *policy.Set, slips []string, data []byte, err error) {
	data, err = readBytes(stdin, path)
	if err != nil {
		return nil, nil, nil, err
	}
	set, warnings, err := policy.ParseWarn(nameOf(path), data)
	for _, w := range warnings {
		slips = append(slips, w.Error())
	}
	return set, slips, data, err
}

// readBytes reads what -f names.
func readBytes(stdin io.Reader, path string) (data []byte, err error) {
	switch path {
	case "":
		return nil, usageError{errors.New("-f FILE is missing")}
	case "-":
		data, err = io.ReadAll(stdin)
	default:
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	return data, nil
}

// judgedHere is the size in bytes up to which a file is judged before any node
// sees it. A larger one takes seconds, and the node judges it anyway.
const judgedHere = 1 << 20

// nameOf is what a file is called in messages.
func nameOf(path string) string {
	if path == "-" {
		return "stdin"
	}
	return path
}

// upload sends a file in pieces.
func upload[R any](g grpc.ClientStreamingClient[pb.PutFileRequest, R], first *pb.PutFileRequest, file []byte) (*R, error) {
	const piece = 512 << 10
	for next := first; ; next = new(pb.PutFileRequest) {
		n := min(piece, len(file))
		next.File, file = file[:n], file[n:]
		if err := g.Send(next); err != nil || len(file) == 0 {
			return g.CloseAndRecv() // which says why nothing more could be sent
		}
	}
}

func policyPutCommand() *cobra.Command {
	var addrs nodes
	var file, match, output string
	var prune bool
	cmd := &cobra.Command{
		Use:   "put -f FILE",
		Short: "Put the policies of a file: all of them or, if anything is wrong, none",
		Long: "put puts the policies of a file. A policy that the file does not change keeps its version; one that the file does\n" +
			"not have stays, unless --prune. With --if-match no policy that it changes may be above that version, and a file of\n" +
			"one policy makes a new version also of equal content. Every node applies it without a restart.",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "text"); err != nil {
				return err
			}
			version, err := ifMatch(match)
			if err != nil {
				return err
			}
			data, err := readBytes(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			if len(data) <= judgedHere {
				if _, err := policy.Parse(nameOf(file), data); err != nil {
					return err
				}
			}
			r, err := ask(cmd.Context(), addrs, changing, func(ctx context.Context, c *grpc.ClientConn) (*pb.PutResponse, error) {
				g, err := pb.NewPoliciesClient(c).PutFile(ctx)
				if err != nil {
					return nil, err
				}
				return upload(g, &pb.PutFileRequest{Name: nameOf(file), Prune: prune, IfMatch: version, Author: author()}, data)
			})
			if err != nil {
				return err
			}
			printWarnings(cmd.ErrOrStderr(), r.GetWarnings())
			return printPut(cmd.OutOrStdout(), r, output)
		},
	}
	addrFlag(cmd, &addrs)
	fileFlag(cmd, &file)
	ifMatchFlag(cmd, &match, "no policy that the file changes is above this version")
	cmd.Flags().BoolVar(&prune, "prune", false, "delete policies that the file does not have")
	outputFlag(cmd, &output, "text")
	return cmd
}

// printWarnings tells what is legal and likely a slip.
func printWarnings(out io.Writer, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(out, "warning:", w)
	}
}

func printPut(out io.Writer, r *pb.PutResponse, output string) error {
	if output == "json" {
		return json.NewEncoder(out).Encode(struct {
			Changed bool   `json:"changed"`
			Version uint64 `json:"version"`
		}{r.GetChanged(), r.GetVersion()})
	}
	word := "version"
	if !r.GetChanged() {
		word = "nothing changed, version"
	}
	_, err := fmt.Fprintf(out, "%s %d\n", word, r.GetVersion())
	return err
}

func policyDeleteCommand() *cobra.Command {
	var addrs nodes
	var match, output string
	cmd := &cobra.Command{
		Use:   "delete ID",
		Short: "Delete a policy and its overrides; its versions are never used again",
		Args:  oneArg("policy id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := ifMatch(match)
			if err != nil {
				return err
			}
			return changePolicies(cmd, addrs, output, func(ctx context.Context, c pb.PoliciesClient) (*pb.PutResponse, error) {
				return c.Delete(ctx, &pb.DeletePolicyRequest{Id: args[0], IfMatch: version, Author: author()})
			})
		},
	}
	addrFlag(cmd, &addrs)
	ifMatchFlag(cmd, &match, "this is the policy's present version")
	outputFlag(cmd, &output, "text")
	return cmd
}

func policyRollbackCommand() *cobra.Command {
	var addrs nodes
	var match, output string
	var to uint64
	cmd := &cobra.Command{
		Use:   "rollback ID --to V",
		Short: "Make a new version of a policy with the content of an old one",
		Args:  oneArg("policy id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			version, err := ifMatch(match)
			if err != nil {
				return err
			}
			if to == 0 {
				return usageError{errors.New("--to V is missing: want an earlier version, see policy history")}
			}
			return changePolicies(cmd, addrs, output, func(ctx context.Context, c pb.PoliciesClient) (*pb.PutResponse, error) {
				return c.Rollback(ctx, &pb.RollbackRequest{Id: args[0], To: to, IfMatch: version, Author: author()})
			})
		},
	}
	addrFlag(cmd, &addrs)
	cmd.Flags().Uint64Var(&to, "to", 0, "version `V` to go back to")
	ifMatchFlag(cmd, &match, "this is the policy's present version")
	outputFlag(cmd, &output, "text")
	return cmd
}

// changePolicies makes one change and prints the version it made.
func changePolicies(cmd *cobra.Command, addrs nodes, output string, change func(context.Context, pb.PoliciesClient) (*pb.PutResponse, error)) error {
	if err := checkOutput(output, "text"); err != nil {
		return err
	}
	r, err := ask(cmd.Context(), addrs, changing, func(ctx context.Context, c *grpc.ClientConn) (*pb.PutResponse, error) {
		return change(ctx, pb.NewPoliciesClient(c))
	})
	if err != nil {
		return err
	}
	return printPut(cmd.OutOrStdout(), r, output)
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/policy"
)

func policyListCommand() *cobra.Command {
	var addrs nodes
	var output string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the policies of the cluster",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "table"); err != nil {
				return err
			}
			r, err := ask(cmd.Context(), addrs, reading, func(ctx context.Context, c *grpc.ClientConn) (*pb.ListPoliciesResponse, error) {
				return pb.NewPoliciesClient(c).List(ctx, &pb.ListPoliciesRequest{})
			})
			if err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(struct {
					Version uint64          `json:"version"`
					Set     json.RawMessage `json:"set"`
				}{r.GetVersion(), r.GetSetJson()})
			}
			return policyTable(cmd.OutOrStdout(), r)
		},
	}
	addrFlag(cmd, &addrs)
	outputFlag(cmd, &output, "table")
	return cmd
}

func policyTable(out io.Writer, r *pb.ListPoliciesResponse) error {
	set, err := policy.Decode(r.GetSetJson())
	if err != nil {
		return fmt.Errorf("the node's policies cannot be read; is it of another version? %w", err)
	}
	fmt.Fprintf(out, "version %d  home [%s]  no_match %s  %d policies  %d overrides\n\n", r.GetVersion(), strings.Join(set.Home, ", "),
		set.NoMatch, len(set.Policies), len(set.Overrides))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tVERSION\tMODE\tALGORITHM\tLIMIT\tSCOPE\tMATCH")
	for _, p := range set.Policies {
		limit := fmt.Sprintf("%d per %s", p.Limit.Amount, time.Duration(p.Limit.Window))
		if p.Limit.Algorithm.HasBurst() {
			limit += fmt.Sprintf(", burst %d", p.Limit.Burst)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", p.ID, p.Version, p.Mode, p.Limit.Algorithm, limit, strings.Join(p.Scope, ","), p.Match)
	}
	return w.Flush()
}

func policyGetCommand() *cobra.Command {
	var addrs nodes
	var output string
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Print a policy as JSON, with its version",
		Args:  oneArg("policy id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, "text"); err != nil {
				return err
			}
			r, err := ask(cmd.Context(), addrs, reading, func(ctx context.Context, c *grpc.ClientConn) (*pb.GetPolicyResponse, error) {
				return pb.NewPoliciesClient(c).Get(ctx, &pb.GetPolicyRequest{Id: args[0]})
			})
			if err != nil {
				return err
			}
			body := bytes.NewBuffer(nil)
			if output == "json" {
				body.Write(r.GetPolicyJson())
			} else if err := json.Indent(body, r.GetPolicyJson(), "", "  "); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), body)
			return err
		},
	}
	addrFlag(cmd, &addrs)
	outputFlag(cmd, &output, "text")
	return cmd
}

// versionJSON is one version of a policy as scripts read it.
type versionJSON struct {
	Version uint64          `json:"version"`
	Action  string          `json:"action"`
	Who     string          `json:"who"`
	When    string          `json:"when"`
	Policy  json.RawMessage `json:"policy"` // null: deleted
}

func policyHistoryCommand() *cobra.Command {
	var addrs nodes
	var output string
	cmd := &cobra.Command{
		Use:   "history ID",
		Short: "List the versions of a policy, newest first",
		Args:  oneArg("policy id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, "table"); err != nil {
				return err
			}
			r, err := ask(cmd.Context(), addrs, reading, func(ctx context.Context, c *grpc.ClientConn) (*pb.PolicyHistoryResponse, error) {
				return pb.NewPoliciesClient(c).History(ctx, &pb.PolicyHistoryRequest{Id: args[0]})
			})
			if err != nil {
				return err
			}
			return printHistory(cmd.OutOrStdout(), r, output)
		},
	}
	addrFlag(cmd, &addrs)
	outputFlag(cmd, &output, "table")
	return cmd
}

func printHistory(out io.Writer, r *pb.PolicyHistoryResponse, output string) error {
	if output == "json" {
		list := []versionJSON{}
		for _, v := range r.GetVersions() {
			body := json.RawMessage(v.GetPolicyJson())
			if len(body) == 0 {
				body = json.RawMessage("null")
			}
			list = append(list, versionJSON{v.GetVersion(), v.GetAction(), v.GetWho(), v.GetWhen(), body})
		}
		return json.NewEncoder(out).Encode(list)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VERSION\tWHEN\tWHO\tACTION\tCONTENT")
	for _, v := range r.GetVersions() {
		content := string(v.GetPolicyJson())
		if content == "" {
			content = "(deleted)"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", v.GetVersion(), orNone(v.GetWhen()), orNone(v.GetWho()), orNone(v.GetAction()), content)
	}
	return w.Flush()
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// auditEntry is one line of the audit log, as the cluster sends it.
type auditEntry struct {
	Version uint64 `json:"version"`
	Action  string `json:"action"`
	Who     string `json:"who"`
	When    string `json:"when"`
	Source  string `json:"source"`
	Changes []struct {
		ID   string `json:"id"`
		From uint64 `json:"from"`
		To   uint64 `json:"to"`
	} `json:"changes"`
	Total  int    `json:"total"`
	Detail string `json:"detail"`
}

func policyAuditCommand() *cobra.Command {
	var addrs nodes
	var output string
	var limit uint32
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who changed what and when, newest first",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "table"); err != nil {
				return err
			}
			r, err := ask(cmd.Context(), addrs, reading, func(ctx context.Context, c *grpc.ClientConn) (*pb.AuditResponse, error) {
				return pb.NewPoliciesClient(c).Audit(ctx, &pb.AuditRequest{Limit: limit})
			})
			if err != nil {
				return err
			}
			if output == "json" {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", r.GetEntriesJson())
				return err
			}
			return auditTable(cmd.OutOrStdout(), r.GetEntriesJson())
		},
	}
	addrFlag(cmd, &addrs)
	cmd.Flags().Uint32Var(&limit, "limit", 100, "at most `N` entries")
	outputFlag(cmd, &output, "table")
	return cmd
}

func auditTable(out io.Writer, body []byte) error {
	var entries []auditEntry
	if err := json.Unmarshal(body, &entries); err != nil {
		return fmt.Errorf("the node's audit log cannot be read; is it of another version? %w", err)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VERSION\tWHEN\tWHO\tACTION\tSOURCE\tCHANGES")
	for _, e := range entries {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\n", e.Version, orNone(e.When), orNone(e.Who), e.Action, orNone(e.Source), e.changes())
	}
	return w.Flush()
}

// changes is what an entry changed, the first few of it.
func (e *auditEntry) changes() string {
	const most = 4
	var parts []string
	for i, c := range e.Changes {
		if i == most {
			break
		}
		version := func(v uint64) string {
			if v == 0 {
				return "-"
			}
			return fmt.Sprint(v)
		}
		parts = append(parts, fmt.Sprintf("%s %s→%s", c.ID, version(c.From), version(c.To)))
	}
	if more := e.Total - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	if e.Detail != "" {
		parts = append(parts, e.Detail)
	}
	return strings.Join(parts, ", ")
}

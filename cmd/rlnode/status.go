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
	"github.com/ringlimit/ringlimit/api/statusjson"
)

func statusCommand() *cobra.Command {
	var addrs nodes
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Tell how the cluster is; exit code 4 if it is not healthy",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "table"); err != nil {
				return err
			}
			r, err := ask(cmd.Context(), addrs, reading, func(ctx context.Context, c *grpc.ClientConn) (*pb.StatusResponse, error) {
				return pb.NewClusterClient(c).Status(ctx, &pb.StatusRequest{})
			})
			if err != nil {
				return err
			}
			if output == "json" {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(statusjson.Of(r))
			} else {
				err = statusTable(cmd.OutOrStdout(), r)
			}
			if err == nil && !r.Healthy {
				err = exitCode(exitUnhealthy)
			}
			return err
		},
	}
	addrFlag(cmd, &addrs)
	outputFlag(cmd, &output, "table")
	return cmd
}

func statusTable(out io.Writer, r *pb.StatusResponse) error {
	word := "healthy"
	if !r.GetHealthy() {
		word = "NOT HEALTHY"
	}
	fmt.Fprintf(out, "cluster %s  %s  revision %d  %d slots  control leader %s  as %s sees it\n",
		orNone(r.GetClusterId()), word, r.GetRevision(), r.GetSlots(), orNone(r.GetControlLeader()), r.GetNode())
	for _, p := range r.GetProblems() {
		fmt.Fprintf(out, "  %s\n", p)
	}
	fmt.Fprintln(out)
	if err := nodesTable(out, r.GetNodes()); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GROUP\tEPOCH\tLEADER\tOWNER\tTERM\tREPLICAS\tSLOTS\tAPPLIED\tBUCKETS\tHEALTHY")
	for _, g := range r.GetGroups() {
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%v\n", g.GetId(), g.GetEpoch(), orNone(g.GetLeader()), g.GetOwner(), g.GetTerm(),
			strings.Join(g.GetReplicas(), ","), g.GetSlots(), g.GetApplied(), g.GetBuckets(), g.GetHealthy())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return movesTable(out, r)
}

// movesTable says nothing when no slot is on the move.
func movesTable(out io.Writer, r *pb.StatusResponse) error {
	if len(r.GetMoves()) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SLOT\tFROM\tTO\tPHASE\tREVISION")
	for _, m := range r.GetMoves() {
		fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%d\n", m.GetSlot(), m.GetFrom(), m.GetTo(), m.GetPhase(), m.GetRevision())
	}
	return w.Flush()
}

func nodesTable(out io.Writer, nodes []*pb.NodeStatus) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tSTATE\tGRPC\tHTTP\tCONTROL\tLEADS\tREPLICAS\tSLOTS\tZONE")
	for _, n := range nodes {
		state := n.GetState()
		if n.GetRetired() {
			state += " (replaced)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", n.GetName(), state, n.GetGrpc(), orNone(n.GetHttp()), n.GetControl(),
			n.GetLeads(), n.GetReplicas(), n.GetSlots(), orNone(n.GetZone()))
	}
	return w.Flush()
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/statusjson"
)

func membersCommand() *cobra.Command {
	var addrs nodes
	var output string
	cmd := &cobra.Command{
		Use:   "members",
		Short: "List the nodes of the cluster",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(output, "table"); err != nil {
				return err
			}
			r, err := ask(cmd.Context(), addrs, reading, func(ctx context.Context, c *grpc.ClientConn) (*pb.MembersResponse, error) {
				return pb.NewClusterClient(c).Members(ctx, &pb.MembersRequest{})
			})
			if err != nil {
				return err
			}
			if output == "json" {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(statusjson.Nodes(r.GetNodes()))
			}
			return nodesTable(cmd.OutOrStdout(), r.GetNodes())
		},
	}
	addrFlag(cmd, &addrs)
	outputFlag(cmd, &output, "table")
	return cmd
}

func removeCommand() *cobra.Command {
	var addrs nodes
	cmd := &cobra.Command{
		Use:   "remove NODE",
		Short: "Declare that a node will never return; its state is gone for good",
		Long: "remove takes a stopped node out of the cluster. Its replicas are made anew on other nodes, where any are left; on a\n" +
			"cluster of three the groups then run on two of three and status exits 4. A node that comes back under the name is new.\n" +
			"A node that was removed before, or has left, is no error.",
		Args: oneArg("node name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := ask(cmd.Context(), addrs, changing, func(ctx context.Context, c *grpc.ClientConn) (*pb.RemoveResponse, error) {
				return pb.NewClusterClient(c).Remove(ctx, &pb.RemoveRequest{Node: args[0]})
			})
			switch {
			case err != nil:
				return err
			case r.GetAlready():
				fmt.Fprintf(cmd.OutOrStdout(), "%s is removed already\n", args[0])
			default:
				fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", args[0])
			}
			return nil
		},
	}
	addrFlag(cmd, &addrs)
	return cmd
}

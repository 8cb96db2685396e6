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

func statusCommand() *cobra.Command {
	var addrs []string
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
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(statusJSON(r))
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

type nodeJSON struct {
	Name        string `json:"name"`
	Incarnation string `json:"incarnation"`
	State       string `json:"state"`
	GRPC        string `json:"grpc"`
	HTTP        string `json:"http"`
	Peer        string `json:"peer"`
	Gossip      string `json:"gossip"`
	Zone        string `json:"zone"`
	Control     string `json:"control"`
	Leads       uint32 `json:"leads"`
	Replicas    uint32 `json:"replicas"`
	Slots       uint32 `json:"slots"`
}

type memberJSON struct {
	Node        string `json:"node"`
	Serial      uint64 `json:"serial"`
	Incarnation string `json:"incarnation"`
	Role        string `json:"role"`
	Applied     uint64 `json:"applied"`
	Chain       string `json:"chain"` // hexadecimal: JSON numbers lose digits
	Reachable   bool   `json:"reachable"`
}

type groupJSON struct {
	ID       uint32       `json:"id"`
	Epoch    uint32       `json:"epoch"`
	Leader   string       `json:"leader"`
	Owner    string       `json:"owner"`
	Term     uint64       `json:"term"`
	Replicas []string     `json:"replicas"`
	Slots    uint32       `json:"slots"`
	Applied  uint64       `json:"applied"`
	Buckets  uint64       `json:"buckets"`
	Healthy  bool         `json:"healthy"`
	Problem  string       `json:"problem"`
	TimeNs   int64        `json:"time_ns"`
	Members  []memberJSON `json:"members"`
}

type clusterJSON struct {
	ClusterID     string      `json:"cluster_id"`
	Revision      uint64      `json:"revision"`
	Healthy       bool        `json:"healthy"`
	Slots         uint32      `json:"slots"`
	ControlLeader string      `json:"control_leader"`
	Problems      []string    `json:"problems"`
	Nodes         []nodeJSON  `json:"nodes"`
	Groups        []groupJSON `json:"groups"`
}

func nodesJSON(nodes []*pb.NodeStatus) []nodeJSON {
	out := []nodeJSON{}
	for _, n := range nodes {
		out = append(out, nodeJSON{
			n.GetName(), n.GetIncarnation(), n.GetState(), n.GetGrpc(), n.GetHttp(), n.GetPeer(), n.GetGossip(),
			n.GetZone(), n.GetControl(), n.GetLeads(), n.GetReplicas(), n.GetSlots(),
		})
	}
	return out
}

func statusJSON(r *pb.StatusResponse) clusterJSON {
	c := clusterJSON{
		ClusterID: r.GetClusterId(), Revision: r.GetRevision(), Healthy: r.GetHealthy(), Slots: r.GetSlots(),
		ControlLeader: r.GetControlLeader(), Problems: append([]string{}, r.GetProblems()...),
		Nodes: nodesJSON(r.GetNodes()), Groups: []groupJSON{},
	}
	for _, g := range r.GetGroups() {
		j := groupJSON{
			ID: g.GetId(), Epoch: g.GetEpoch(), Leader: g.GetLeader(), Owner: g.GetOwner(), Term: g.GetTerm(),
			Replicas: append([]string{}, g.GetReplicas()...), Slots: g.GetSlots(), Applied: g.GetApplied(), Buckets: g.GetBuckets(),
			Healthy: g.GetHealthy(), Problem: g.GetProblem(), TimeNs: g.GetTimeNs(), Members: []memberJSON{},
		}
		for _, m := range g.GetMembers() {
			j.Members = append(j.Members, memberJSON{
				m.GetNode(), m.GetSerial(), m.GetIncarnation(), m.GetRole(), m.GetApplied(),
				fmt.Sprintf("%016x", m.GetChain()), m.GetReachable(),
			})
		}
		c.Groups = append(c.Groups, j)
	}
	return c
}

func statusTable(out io.Writer, r *pb.StatusResponse) error {
	word := "healthy"
	if !r.GetHealthy() {
		word = "NOT HEALTHY"
	}
	fmt.Fprintf(out, "cluster %s  %s  revision %d  %d slots  control leader %s\n", r.GetClusterId(), word, r.GetRevision(), r.GetSlots(), orNone(r.GetControlLeader()))
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
	return w.Flush()
}

func nodesTable(out io.Writer, nodes []*pb.NodeStatus) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tSTATE\tGRPC\tHTTP\tCONTROL\tLEADS\tREPLICAS\tSLOTS\tZONE")
	for _, n := range nodes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%s\n", n.GetName(), n.GetState(), n.GetGrpc(), orNone(n.GetHttp()), n.GetControl(),
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

func membersCommand() *cobra.Command {
	var addrs []string
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
				return json.NewEncoder(cmd.OutOrStdout()).Encode(nodesJSON(r.GetNodes()))
			}
			return nodesTable(cmd.OutOrStdout(), r.GetNodes())
		},
	}
	addrFlag(cmd, &addrs)
	outputFlag(cmd, &output, "table")
	return cmd
}

func removeCommand() *cobra.Command {
	var addrs []string
	cmd := &cobra.Command{
		Use:   "remove NODE",
		Short: "Declare that a node will never return; its state is gone for good",
		Long: "remove takes a stopped node out of the cluster. Its replicas are made anew on other nodes, where any are left; on a\n" +
			"cluster of three the groups then run on two of three and status exits 4. A node that comes back under the name is new.",
		Args: oneArg("node name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, err := ask(cmd.Context(), addrs, changing, func(ctx context.Context, c *grpc.ClientConn) (*pb.RemoveResponse, error) {
				return pb.NewClusterClient(c).Remove(ctx, &pb.RemoveRequest{Node: args[0]})
			})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "removed %s\n", args[0])
			}
			return err
		},
	}
	addrFlag(cmd, &addrs)
	return cmd
}

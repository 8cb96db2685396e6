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
	Retired     bool   `json:"retired"`
	Progress    string `json:"progress"` // of a draining node
}

type moveJSON struct {
	Slot        uint32 `json:"slot"`
	Revision    uint64 `json:"revision"`
	From        uint32 `json:"from"`
	To          uint32 `json:"to"`
	Phase       string `json:"phase"`
	FromSettled bool   `json:"from_settled"`
	ToSettled   bool   `json:"to_settled"`
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
	Moves         []moveJSON  `json:"moves"`
	MovesWaiting  uint32      `json:"moves_waiting"`
	Dead          uint32      `json:"dead"`
	SeenBy        string      `json:"seen_by"` // the node that answered
}

func nodesJSON(nodes []*pb.NodeStatus) []nodeJSON {
	out := []nodeJSON{}
	for _, n := range nodes {
		out = append(out, nodeJSON{
			n.GetName(), n.GetIncarnation(), n.GetState(), n.GetGrpc(), n.GetHttp(), n.GetPeer(), n.GetGossip(),
			n.GetZone(), n.GetControl(), n.GetLeads(), n.GetReplicas(), n.GetSlots(),
			n.GetRetired(), n.GetProgress(),
		})
	}
	return out
}

func statusJSON(r *pb.StatusResponse) clusterJSON {
	c := clusterJSON{
		ClusterID: r.GetClusterId(), Revision: r.GetRevision(), Healthy: r.GetHealthy(), Slots: r.GetSlots(),
		ControlLeader: r.GetControlLeader(), Problems: append([]string{}, r.GetProblems()...),
		Nodes: nodesJSON(r.GetNodes()), Groups: []groupJSON{}, Moves: []moveJSON{},
		MovesWaiting: r.GetMovesWaiting(), Dead: r.GetDead(), SeenBy: r.GetNode(),
	}
	for _, m := range r.GetMoves() {
		c.Moves = append(c.Moves, moveJSON{m.GetSlot(), m.GetRevision(), m.GetFrom(), m.GetTo(), m.GetPhase(), m.GetFromSettled(), m.GetToSettled()})
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

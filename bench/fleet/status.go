package fleet

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

// poll is how often the fleet looks again while it waits.
const poll = 50 * time.Millisecond

// Dial returns a connection to one node; the caller closes it.
func (n *Node) Dial() (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(n.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("dial node %s: %w", n.Name, err)
	}
	return conn, nil
}

// Status asks one node for its view of the cluster.
func (n *Node) Status(ctx context.Context) (*pb.StatusResponse, error) {
	conn, err := n.Dial()
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	st, err := pb.NewClusterClient(conn).Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return nil, fmt.Errorf("status of node %s: %w", n.Name, err)
	}
	return st, nil
}

// Status asks the nodes that run, in order, and returns the first view given.
func (f *Fleet) Status(ctx context.Context) (*pb.StatusResponse, error) {
	return f.StatusWithout(ctx, nil)
}

// StatusWithout is Status by the other nodes than one, which stands still.
func (f *Fleet) StatusWithout(ctx context.Context, still *Node) (*pb.StatusResponse, error) {
	err := errors.New("no node runs")
	for _, n := range f.List() {
		if n.PID() == 0 || n == still {
			continue
		}
		var st *pb.StatusResponse
		if st, err = n.Status(ctx); err == nil {
			return st, nil
		}
	}
	return nil, err
}

// WaitHealthy waits until every node, asked itself, calls the cluster healthy,
// and until `rlnode status` agrees by exit code 0. It returns how long it took.
func (f *Fleet) WaitHealthy(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	for {
		err := f.healthy(ctx)
		if err == nil {
			return time.Since(start), nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("not healthy after %v: %w", time.Since(start).Round(time.Millisecond), err)
		case <-time.After(poll):
		}
	}
}

func (f *Fleet) healthy(ctx context.Context) error {
	for _, n := range f.List() {
		st, err := n.Status(ctx)
		if err != nil {
			return err
		}
		if !st.GetHealthy() || len(st.GetGroups()) == 0 {
			return fmt.Errorf("node %s sees problems: %q", n.Name, st.GetProblems())
		}
	}
	code, out, err := f.StatusCommand(ctx)
	if err != nil {
		return err
	}
	if code != 0 {
		return fmt.Errorf("rlnode status: exit code %d: %.200s", code, out)
	}
	return nil
}

// StatusCommand runs `rlnode status -o json` against all nodes and returns its
// exit code and its output.
func (f *Fleet) StatusCommand(ctx context.Context) (code int, out []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return f.Command(ctx, "status", "-o", "json")
}

// Command runs rlnode with the addresses of all nodes that run, and returns its
// exit code and what it wrote: the answer, or if it failed, the answer and the
// diagnostics.
func (f *Fleet) Command(ctx context.Context, args ...string) (code int, out []byte, err error) {
	var addrs []string
	for _, n := range f.List() {
		if n.PID() > 0 {
			addrs = append(addrs, n.GRPC)
		}
	}
	if addrs == nil {
		return 0, nil, errors.New("no node runs")
	}
	args = append(args, "--addr", strings.Join(addrs, ","))
	out, err = exec.CommandContext(ctx, f.cfg.Binary, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() >= 0 {
		return failed.ExitCode(), append(out, failed.Stderr...), nil
	}
	return 0, out, err
}

// Leader returns the node that leads a group, as the cluster sees it.
func (f *Fleet) Leader(ctx context.Context, group uint32) (*Node, error) {
	st, err := f.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range st.GetGroups() {
		if g.GetId() == group {
			if n := f.Node(g.GetLeader()); n != nil {
				return n, nil
			}
			return nil, fmt.Errorf("group %d has leader %q", group, g.GetLeader())
		}
	}
	return nil, fmt.Errorf("no group %d in the status", group)
}

package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bench/check"
	"github.com/ringlimit/ringlimit/client"
)

// changes takes under a policy whose limit is changed all the time, with If-Match, by
// one who reads it before.
func (l *load) changes() {
	tenant := l.tenant("changing")
	for range 2 {
		c := l.caller("changing", tenant)
		l.every(50*time.Millisecond, func(int) {
			_, _ = c.ask(l.whole, check.Op{Kind: check.Take, Cost: 1}, client.Request{}, attempt)
		})
	}
	name := l.bucket(tenant, "changing")
	l.s.history.mu.Lock()
	l.s.setup.Changed[name] = map[uint64]check.Limit{}
	l.s.history.mu.Unlock()
	l.every(time.Second, func(i int) {
		if err := l.change(name, uint64(1+i%2)*maxRate/2); err != nil {
			l.s.breach("change of a policy: %v", err)
		}
	})
}

// change sets the rate of the policy by one node, and keeps what every version of it
// says. Only what shows a broken promise is an error.
func (l *load) change(bucket string, amount uint64) error {
	ctx, cancel := context.WithTimeout(l.whole, patience)
	defer cancel()
	nodes := l.s.fleet.List()
	conn, err := nodes[l.s.history.fresh()%uint64(len(nodes))].Dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	before, p, err := l.read(ctx, conn, bucket)
	if err != nil {
		return nil
	}
	p["amount"] = amount
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	r, err := pb.NewPoliciesClient(conn).Put(ctx, &pb.PutPolicyRequest{PolicyJson: text, IfMatch: &before, Author: &pb.Author{Who: "trial"}})
	switch err = fault.FromStatus(err); {
	case err == nil && r.GetVersion() < before:
		return fmt.Errorf("version %d after %d", r.GetVersion(), before)
	case errors.Is(err, fault.InvalidArgument) || errors.Is(err, fault.Internal) || errors.Is(err, fault.NotFound):
		return err
	}
	// Whether it was done or not is read later: each version is read before it is changed.
	_, _, _ = l.read(ctx, conn, bucket)
	return nil
}

// read gets the policy of a node and notes the limit of its version.
func (l *load) read(ctx context.Context, conn *grpc.ClientConn, bucket string) (version uint64, p map[string]any, err error) {
	g, err := pb.NewPoliciesClient(conn).Get(ctx, &pb.GetPolicyRequest{Id: "changing"})
	if err != nil {
		return 0, nil, err
	}
	if err := json.Unmarshal(g.GetPolicyJson(), &p); err != nil {
		return 0, nil, err
	}
	amount, ok := p["amount"].(float64)
	if !ok {
		return 0, nil, fmt.Errorf("no amount in %s", g.GetPolicyJson())
	}
	limit := l.limits["changing"]
	limit.Amount = uint64(amount)
	l.s.history.mu.Lock()
	defer l.s.history.mu.Unlock()
	l.s.setup.Changed[bucket][g.GetVersion()] = limit
	return g.GetVersion(), p, nil
}

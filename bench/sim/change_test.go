package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/bucket"
)

// change puts another limit for the policy that changes, if it is what it was last
// seen to be.
func (k *work) change(r *rand.Rand) {
	names := k.w.running()
	if len(names) == 0 {
		return
	}
	x := k.w.node(names[r.IntN(len(names))])
	if x == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	got, err := x.Policies().Get(ctx, &pb.GetPolicyRequest{Id: "changed"})
	if err != nil {
		return
	}
	file := fmt.Sprintf("policies:\n  - {id: changed, match: {plan: changed}, scope: [tenant], algorithm: token_bucket, amount: %d, window: 1s, burst: %d}\n",
		1+r.IntN(9), 5+r.IntN(15))
	match := got.GetVersion()
	put, err := x.Policies().PutFile(ctx, &pb.PutFileRequest{File: []byte(file), Name: "sim.yaml", IfMatch: &match})
	k.w.trace.note("policy change by %s: %v, %v", x.name, put, err)
}

// learn reads every version that the changing policy has had, from the nodes that know:
// one whose disk was full may be behind for a while.
func (k *work) learn() error {
	if !slices.Contains(k.w.plan.works, "changed") {
		return nil
	}
	var known []*pb.PolicyVersion
	for _, name := range k.w.running() {
		h, err := k.w.node(name).Policies().History(context.Background(), &pb.PolicyHistoryRequest{Id: "changed"})
		if err != nil {
			return err
		}
		if len(h.GetVersions()) > len(known) {
			known = h.GetVersions()
		}
	}
	if len(known) == 0 {
		return errors.New("no node runs")
	}
	for _, v := range known {
		var l struct{ Amount, Burst uint64 }
		if err := json.Unmarshal(v.GetPolicyJson(), &l); err != nil {
			return err
		}
		k.versions[v.GetVersion()] = bucket.Limit{Algorithm: bucket.TokenBucket, Amount: l.Amount, Burst: l.Burst, Window: int64(time.Second)}
		k.w.trace.note("version %d of changed: %d a second, burst %d", v.GetVersion(), l.Amount, l.Burst)
	}
	return nil
}

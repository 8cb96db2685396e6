package cluster

import (
	"strings"

	"github.com/ringlimit/ringlimit/policy"
)

// compareWithFile warns if the policies that this node was started with are not
// the cluster's: only a new cluster takes them from there.
func (n *Node) compareWithFile() {
	changes := policy.Diff(n.control.State().Policies, n.cfg.Policies)
	if len(changes) == 0 {
		return
	}
	const shown = 5
	var what []string
	for _, c := range changes[:min(shown, len(changes))] {
		switch {
		case c.ID == "":
			what = append(what, "settings beside the policies")
		case c.Kind == policy.Added:
			what = append(what, c.ID+" is in the file only")
		case c.Kind == policy.Removed:
			what = append(what, c.ID+" is in the cluster only")
		default:
			what = append(what, c.ID+" differs")
		}
	}
	if len(changes) > shown {
		what = append(what, "…")
	}
	n.log.Warn("--policies is not what the cluster has, and is ignored: the cluster was made before; rlnode policy diff tells more, and rlnode policy put changes it",
		"differences", len(changes), "such as", strings.Join(what, ", "))
}

// firstPolicies are those of a cluster that this node makes.
func (n *Node) firstPolicies() *policy.Set {
	if n.cfg.Policies == nil {
		return &policy.Set{Home: []string{"tenant"}}
	}
	return n.cfg.Policies
}

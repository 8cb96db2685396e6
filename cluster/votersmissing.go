package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/ringlimit/ringlimit/control"
)

// votersMissing says that the control group has fewer voters than it shall have,
// empty if it has not. A node that came back without its directory has lost its vote,
// and one that is behind in its log is no help yet. Until that is mended the loss of
// one node more may leave the control group without a majority, in the first case for
// good: whoever restarts one node after the other has to wait.
func (n *Node) votersMissing(s *control.State) string {
	servers, err := n.control.Servers()
	if err != nil {
		return "" // this replica stops
	}
	stay, now := 0, time.Now()
	var voters, late []string
	for _, node := range s.Nodes {
		if node.Removed || node.Draining || node.Retired {
			continue
		}
		switch voter := servers[controlID(node.Name, node.Directory)]; {
		case voter && n.answers(node) && n.lag.late(node.Name, now):
			late = append(late, node.Name)
			stay++
		case voter:
			voters = append(voters, node.Name)
			stay++
		case n.answers(node):
			stay++ // one that does not answer cannot be given a vote, and the others do not wait for it
		}
	}
	want := oddVoters(s.Voters, stay)
	if len(voters) >= want {
		return ""
	}
	why := fmt.Sprintf("the control group has %d of %d voters (%s): ", len(voters), want, strings.Join(voters, ", "))
	if len(late) > 0 {
		return why + fmt.Sprintf("%s applied nothing new of its log for over %s: look at its disk and its links to the others", strings.Join(late, ", "), controlLagAllowed)
	}
	return why + "another node gets its vote once it has caught up"
}

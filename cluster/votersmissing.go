package cluster

import (
	"fmt"
	"strings"

	"github.com/ringlimit/ringlimit/control"
)

// votersMissing says that the control group has fewer voters than it shall have,
// empty if it has not. A node that came back without its directory has lost its vote,
// and until it has one again the loss of one node more may leave the control group
// without a majority for good: whoever restarts one node after the other has to wait.
func (n *Node) votersMissing(s *control.State) string {
	servers, err := n.control.Servers()
	if err != nil {
		return "" // this replica stops
	}
	stay := 0
	var voters []string
	for _, node := range s.Nodes {
		if node.Removed || node.Draining || node.Retired {
			continue
		}
		switch voter := servers[controlID(node.Name, node.Directory)]; {
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
	return fmt.Sprintf("the control group has %d of %d voters (%s): another node gets its vote once it has caught up",
		len(voters), want, strings.Join(voters, ", "))
}

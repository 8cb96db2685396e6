package cluster

import (
	"encoding/json"
	"slices"

	"github.com/ringlimit/ringlimit/control"
)

// hintsFile keeps where the other nodes were reached last. A node that comes back
// to its directory knows their addresses by its control state only once that has
// a leader, which needs the addresses.
const hintsFile = "peers.json"

// hint is where one node was.
type hint struct {
	Name, Peer, Gossip, GRPC string
}

// readHints takes over what the directory says; a file that cannot be read is
// none: gossip and --join are asked too.
func (n *Node) readHints() {
	if n.dir == nil {
		return
	}
	data, err := n.dir.ReadFile(hintsFile)
	if err != nil {
		return
	}
	var hints []hint
	if err := json.Unmarshal(data, &hints); err != nil {
		n.log.Warn("addresses of earlier peers are not readable, and left out", "file", hintsFile, "error", err)
		return
	}
	n.hints.Store(&hints)
}

// keepHints writes the addresses of the other nodes down when they have changed.
func (n *Node) keepHints(s *control.State) {
	if n.dir == nil || len(s.Nodes) == 0 {
		return
	}
	var hints []hint
	for _, node := range s.Nodes {
		if !node.Removed && node.Name != n.self.name {
			hints = append(hints, hint{node.Name, node.Peer, node.Gossip, node.GRPC})
		}
	}
	if old := n.hints.Load(); old != nil && slices.Equal(*old, hints) {
		return
	}
	data, err := json.Marshal(hints)
	if err == nil {
		err = n.dir.WriteFile(hintsFile, data)
	}
	if err != nil {
		n.log.Warn("addresses of peers are not kept", "file", hintsFile, "error", err)
		return
	}
	n.hints.Store(&hints)
}

// known are the other nodes: of the control state, or, before it has any, of
// what was written down.
func (n *Node) known() []hint {
	if n.control != nil {
		var nodes []hint
		for _, node := range n.control.State().Nodes {
			if !node.Removed && node.Name != n.self.name {
				nodes = append(nodes, hint{node.Name, node.Peer, node.Gossip, node.GRPC})
			}
		}
		if len(nodes) > 0 {
			return nodes
		}
	}
	if hints := n.hints.Load(); hints != nil {
		return *hints
	}
	return nil
}

package fleet

import (
	"fmt"
	"os"
)

// Process makes a node of another program, such as a server to compare with: started,
// measured and ended as nodes are, and of no cluster. Its log goes to dir, which is
// made; args is its command line, the program first.
func Process(name, dir string, args ...string) (*Node, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("directory of %s: %w", name, err)
	}
	return &Node{Name: name, dir: dir, args: args}, nil
}

// FreePorts returns n different ports that nobody listens on at loopback now.
func FreePorts(n int) ([]int, error) { return freePorts(loopback, n, map[int]bool{}) }

package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// SetClock makes the group time of a node go at a rate from now on, 1 being that of
// the machine and 0 none at all, and first jump ahead. It needs Config.TestClock. A
// node that is started anew keeps the rate and jumps again.
func (n *Node) SetClock(rate float64, jump time.Duration) error {
	if n.clock == "" {
		return fmt.Errorf("node %s has no test clock", n.Name)
	}
	if err := os.WriteFile(n.clock, fmt.Appendf(nil, "%g %v\n", rate, jump), 0o644); err != nil {
		return fmt.Errorf("clock of node %s: %w", n.Name, err)
	}
	return n.signal(syscall.SIGUSR1)
}

// AheadBy is what to put around a node (see Around) whose clocks shall be ahead: a
// time namespace.
func AheadBy(d time.Duration) []string {
	seconds := strconv.Itoa(int(d.Seconds()))
	return []string{"unshare", "--time", "--monotonic", seconds, "--boottime", seconds}
}

// CanSetAhead says why AheadBy does not work here, nil if it does: it tries.
func CanSetAhead() error {
	around := append(AheadBy(time.Hour), "true")
	return command(around[0], around[1:]...)
}

// BuildTestClock builds an rlnode with a test clock into a directory, from the
// sources around the working directory, and returns its path.
func BuildTestClock(dir string) (binary string, err error) {
	binary = filepath.Join(dir, "rlnode-testclock")
	cmd := exec.Command("go", "build", "-tags", "testclock", "-o", binary, "./cmd/rlnode")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build with a test clock: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return binary, nil
}

package fleet

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// asHarness makes this test binary the harness that TestNodesDieWithTheHarness kills.
const asHarness = "RL_TEST_HARNESS"

// TestNodesDieWithTheHarness, however that dies: here by SIGKILL, with a node that
// itself stands still.
func TestNodesDieWithTheHarness(t *testing.T) {
	if dir := os.Getenv(asHarness); dir != "" {
		harness(t, dir)
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestNodesDieWithTheHarness$")
	cmd.Env = append(os.Environ(), asHarness+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	line, _ := bufio.NewReader(out).ReadString('\n')
	if _, err := fmt.Sscanf(line, "node %d", &pid); err != nil || !running(pid) {
		t.Errorf("%q: no node runs: %v", line, err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for end := time.Now().Add(5 * time.Second); running(pid); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			end, _ := os.FindProcess(pid)
			_ = end.Kill()
			t.Fatal("the node runs on")
		}
	}
}

// harness starts a node, says which process it is, and waits to be killed.
func harness(t *testing.T, dir string) {
	n := newNode("a", loopback, make([]int, portsOfNode))
	n.dir, n.args = dir, []string{"sleep", "60"}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if err := n.Pause(); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("node %d\n", n.PID())
	<-time.After(time.Minute)
}

// running says whether a process is there and has not ended.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

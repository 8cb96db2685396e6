package fleet

import (
	"fmt"
	"testing"
	"time"
)

func TestParseCgroups(t *testing.T) {
	for _, c := range []struct {
		name, lines, root, home string
		unified, fails          bool
	}{
		{"version 1", "7:memory:/m\n3:cpuset:/\n2:cpu,cpuacct:/box\n0::/\n", "/c/cpu,cpuacct", "/c/cpu,cpuacct/box", false, false},
		{"version 2", "0::/user.slice/x\n", "/c", "/c/user.slice/x", true, false},
		{"no cpu controller", "3:cpuset:/\n", "", "", false, true},
	} {
		h, home, err := parseCgroups(c.lines, "/c")
		if h.root != c.root || home != c.home || h.unified != c.unified || (err != nil) != c.fails {
			t.Errorf("%s: %+v, %q, %v", c.name, h, home, err)
		}
	}
}

// TestThrottle: a process that would use a whole core gets its share, and all of it again
// when the quota is lifted.
func TestThrottle(t *testing.T) {
	n := newNode("a", "127.0.0.1", make([]int, portsOfNode))
	n.dir = t.TempDir()
	n.args = []string{"/bin/sh", "-c", "while :; do :; done"}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	defer n.Kill()
	lift, err := n.Throttle(0.05)
	if err != nil {
		t.Skipf("this machine cannot: %v", err)
	}
	dir := cgroupOf(t, n)
	used := spentIn(t, n, time.Second)
	if err := lift(); err != nil {
		t.Fatal(err)
	}
	if used > 250*time.Millisecond {
		t.Errorf("used %v in a second at 5 %%", used)
	}
	if free := spentIn(t, n, time.Second); free < 2*used {
		t.Errorf("used %v in a second with the quota lifted, %v before", free, used)
	}
	if now := cgroupOf(t, n); now == dir {
		t.Errorf("still in the control group it had: %s", now)
	}
}

func spentIn(t *testing.T, n *Node, d time.Duration) time.Duration {
	t.Helper()
	before, err := n.CPU()
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(d)
	after, err := n.CPU()
	if err != nil {
		t.Fatal(err)
	}
	return after - before
}

func cgroupOf(t *testing.T, n *Node) string {
	t.Helper()
	_, home, err := cpuCgroup(fmt.Sprintf("/proc/%d/cgroup", n.PID()))
	if err != nil {
		t.Fatal(err)
	}
	return home
}

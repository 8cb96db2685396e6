package fleet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A quota takes CPU time away from a node as a busy neighbour or a container's limit
// does: the process runs for a moment of each period and stands still for the rest.
const (
	cgroups     = "/sys/fs/cgroup"
	quotaPeriod = 100_000 // µs
)

// Throttle limits the process to a share of one core until lift is called, by a control
// group of its own. It needs Linux, root, and a cgroup hierarchy with the cpu
// controller that may be written; without these it fails and changes nothing.
func (n *Node) Throttle(share float64) (lift func() error, err error) {
	pid := strconv.Itoa(n.PID())
	cpu, home, err := cpuCgroup("/proc/" + pid + "/cgroup")
	if err != nil {
		return nil, fmt.Errorf("CPU quota of node %s: %w", n.Name, err)
	}
	dir := filepath.Join(cpu.root, fmt.Sprintf("%s%d.%s", prefix, os.Getpid(), n.Name))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, fmt.Errorf("CPU quota of node %s: %w", n.Name, err)
	}
	lift = func() error {
		back := write(filepath.Join(home, "cgroup.procs"), pid)
		if errors.Is(back, syscall.ESRCH) {
			back = nil // it has ended
		}
		return errors.Join(back, os.Remove(dir))
	}
	for _, s := range cpu.settings(dir, int(share*quotaPeriod)) {
		if err := write(s.file, s.value); err != nil {
			return nil, errors.Join(fmt.Errorf("CPU quota of node %s: %w", n.Name, err), os.Remove(dir))
		}
	}
	if err := write(filepath.Join(dir, "cgroup.procs"), pid); err != nil {
		return nil, errors.Join(fmt.Errorf("CPU quota of node %s: %w", n.Name, err), os.Remove(dir))
	}
	return lift, nil
}

// CanThrottle says why processes cannot be given a share of a core here, nil if they
// can: it tries with one that sleeps, whose output is below dir.
func CanThrottle(dir string) error {
	n := newNode("quota", loopback, make([]int, portsOfNode))
	n.args, n.dir = []string{"sleep", "60"}, dir
	if err := n.Start(); err != nil {
		return err
	}
	defer func() { _ = n.Kill() }()
	lift, err := n.Throttle(0.5)
	if err != nil {
		return err
	}
	return lift()
}

// quotaDirs are the control groups that harnesses have made.
func quotaDirs() []string {
	cpu, _, err := cpuCgroup("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	dirs, _ := filepath.Glob(filepath.Join(cpu.root, prefix+"[0-9]*"))
	return dirs
}

// setting is what to write into a file of a control group.
type setting struct{ file, value string }

// hierarchy is a mounted tree of control groups that limits CPU time.
type hierarchy struct {
	root    string
	unified bool // version 2
}

// settings are what limits a control group to so many µs of each period.
func (h hierarchy) settings(dir string, quota int) []setting {
	if h.unified {
		return []setting{
			{filepath.Join(h.root, "cgroup.subtree_control"), "+cpu"},
			{filepath.Join(dir, "cpu.max"), fmt.Sprintf("%d %d", quota, quotaPeriod)},
		}
	}
	return []setting{
		{filepath.Join(dir, "cpu.cfs_period_us"), strconv.Itoa(quotaPeriod)},
		{filepath.Join(dir, "cpu.cfs_quota_us"), strconv.Itoa(quota)},
	}
}

// cpuCgroup finds the hierarchy that limits CPU time, and where a process is in it,
// from its /proc/<pid>/cgroup.
func cpuCgroup(file string) (h hierarchy, home string, err error) {
	lines, err := os.ReadFile(file)
	if err != nil {
		return hierarchy{}, "", err
	}
	return parseCgroups(string(lines), cgroups)
}

// parseCgroups reads lines of "id:controllers:path"; version 2 names no controllers.
func parseCgroups(lines, mount string) (h hierarchy, home string, err error) {
	unified := ""
	for line := range strings.Lines(lines) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case controllers == "":
			unified = path
		default:
			for c := range strings.SplitSeq(controllers, ",") {
				if c == "cpu" {
					h = hierarchy{root: filepath.Join(mount, controllers)}
					return h, filepath.Join(h.root, path), nil
				}
			}
		}
	}
	if unified == "" {
		return hierarchy{}, "", errors.New("no cgroup hierarchy has a cpu controller")
	}
	return hierarchy{root: mount, unified: true}, filepath.Join(mount, unified), nil
}

// write writes to a file that is there.
func write(file, value string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

package fleet

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// prefix begins the names of all that a yard makes; the process id follows it.
const prefix = "rl"

// SweepDead removes bridges, namespaces, filters, groups of processes and disks of
// SweepDead removes bridges, namespaces, filters, control groups and disks of harnesses
// that have died, and ends nodes that are still in those namespaces. It needs root, and
// does nothing to the living. (Their nodes die with them on Linux; see leash.)
func SweepDead() {
	spaces := listed("ip", "-br", "netns")
	for _, s := range spaces {
		if dead(s) {
			for _, pid := range listed("ip", "netns", "pids", s) {
				if n, err := strconv.Atoi(pid); err == nil {
					end(n)
				}
			}
			_ = ip("netns", "del", s)
		}
	}
	links, _ := net.Interfaces()
	for _, l := range links {
		if dead(l.Name) {
			_ = ip("link", "del", l.Name)
		}
	}
	for _, line := range listed("nft", "list", "tables", "bridge") {
		if name := lastField(line); dead(name) {
			_ = nft("delete table bridge " + name + "\n")
		}
	}
	for _, dir := range quotaDirs() {
		if dead(filepath.Base(dir)) {
			_ = os.Remove(dir)
		}
	}
	sweepDisks()
}

// end kills a process that a dead harness has left.
func end(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}

// dead says whether a name is one of ours whose process has gone.
func dead(name string) bool {
	pid, ok := ownerOf(name)
	if !ok || pid == os.Getpid() {
		return false
	}
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return os.IsNotExist(err)
}

// ownerOf reads the process id out of a name such as rl4711.0a or rl4711_0.
func ownerOf(name string) (pid int, ok bool) {
	rest, ok := strings.CutPrefix(name, prefix)
	digits := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if !ok || digits <= 0 || rest[digits] != '.' && rest[digits] != '_' {
		return 0, false
	}
	pid, err := strconv.Atoi(rest[:digits])
	return pid, err == nil
}

// listed returns the first word of each line that a command prints, but whole
// lines of nft; none if it fails.
func listed(name string, args ...string) (lines []string) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return nil
	}
	for l := range strings.Lines(string(out)) {
		if l = strings.TrimSpace(l); name != "nft" {
			l, _, _ = strings.Cut(l, " ")
		}
		if l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

func lastField(line string) string {
	f := strings.Fields(line)
	if len(f) == 0 {
		return ""
	}
	return f[len(f)-1]
}

// freeSubnet returns a subnet of the range for benchmarks (RFC 2544) of which
// this machine has no address, starting from one that the process id picks.
func freeSubnet() (netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Prefix{}, err
	}
	for i := range 512 {
		n := (os.Getpid() + i) % 512
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, byte(18 + n/256), byte(n), 0}), 24)
		if !slices.ContainsFunc(addrs, func(a net.Addr) bool {
			other, err := netip.ParsePrefix(a.String())
			return err == nil && other.Overlaps(p)
		}) {
			return p, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("no free subnet in 198.18.0.0/15")
}

// mounts returns the sources and directories of what is mounted.
func mounts() (list [][2]string) {
	f, err := os.Open("/proc/mounts")
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) > 1 {
			list = append(list, [2]string{f[0], f[1]})
		}
	}
	return list
}

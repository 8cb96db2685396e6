package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"time"
)

// errNotIsolated is returned by what needs namespaces of a fleet without them.
var errNotIsolated = errors.New("fleet: started without namespaces")

// yard is a bridge of this machine and, at each of its ports, a network namespace
// with one node. All its names begin with rl and this process's id, by which a
// later run knows what a dead one has left.
type yard struct {
	name   string // of the bridge, and the beginning of all others
	subnet netip.Prefix
	rules  *rules
	made   []string // names of nodes
	disks  []string // mount points
}

// CanIsolate says why nodes cannot be given namespaces here, with links that are cut
// and lose packets; nil if they can: it tries.
func CanIsolate() error {
	if os.Geteuid() != 0 {
		return errors.New("namespaces need root")
	}
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("namespaces need the command %s", tool)
		}
	}
	y, err := newYard(int(yards.Add(1)))
	if err != nil {
		return err
	}
	defer y.close()
	for i, node := range []string{"a", "b"} {
		if _, err := y.add(node, i); err != nil {
			return err
		}
	}
	inside := append(y.inside("a"), "true")
	return errors.Join(
		command(inside[0], inside[1:]...),
		y.rules.lose(pair{"a", "b"}, 10), y.rules.block(pair{"b", "a"}, GossipPlane, false),
	)
}

// newYard makes a bridge; number tells the fleets of one process apart.
func newYard(number int) (*yard, error) {
	y := &yard{name: fmt.Sprintf("%s%d.%d", prefix, os.Getpid(), number)}
	var err error
	if y.subnet, err = freeSubnet(); err != nil {
		return nil, err
	}
	y.rules = &rules{
		table: strings.ReplaceAll(y.name, ".", "_"), port: y.port, apply: nft,
		blocked: map[pair][]Plane{}, lossy: map[pair]int{},
	}
	err = errors.Join(
		ip("link", "add", y.name, "type", "bridge", "forward_delay", "0"),
		ip("addr", "add", y.host().String()+"/24", "dev", y.name),
		ip("link", "set", y.name, "up"),
		nft(fmt.Sprintf("add table bridge %[1]s\nadd chain bridge %[1]s cut { type filter hook forward priority 0; policy accept; }\n", y.rules.table)),
	)
	if err != nil {
		y.close()
		return nil, fmt.Errorf("bridge %s: %w", y.name, err)
	}
	return y, nil
}

// host is the address of this process on the bridge.
func (y *yard) host() netip.Addr { return y.subnet.Addr().Next() }

// port is the bridge's port of a node, and space its namespace.
func (y *yard) port(node string) string  { return y.name + node }
func (y *yard) space(node string) string { return y.name + node }

// add makes the namespace of one node, the n-th ever, and returns its address.
func (y *yard) add(node string, n int) (netip.Addr, error) {
	b := y.subnet.Addr().As4()
	if n > 240 {
		return netip.Addr{}, errors.New("a fleet has at most 240 nodes in its life")
	}
	b[3] = byte(10 + n)
	addr, inside := netip.AddrFrom4(b), "e"+y.port(node)[1:]
	y.made = append(y.made, node)
	for _, args := range [][]string{
		{"netns", "add", y.space(node)},
		{"link", "add", y.port(node), "type", "veth", "peer", "name", inside},
		{"link", "set", inside, "netns", y.space(node)},
		{"link", "set", y.port(node), "master", y.name, "up"},
		{"-n", y.space(node), "addr", "add", addr.String() + "/24", "dev", inside},
		{"-n", y.space(node), "link", "set", inside, "up"},
		{"-n", y.space(node), "link", "set", "lo", "up"},
	} {
		if err := ip(args...); err != nil {
			return addr, fmt.Errorf("namespace of node %s: %w", node, err)
		}
	}
	return addr, nil
}

// inside is what to put before a command line that runs in a node's namespace.
func (y *yard) inside(node string) []string { return []string{"ip", "netns", "exec", y.space(node)} }

// link takes the bridge's port of a node down or up.
func (y *yard) link(node string, up bool) error {
	state := "down"
	if up {
		state = "up"
	}
	return ip("link", "set", y.port(node), state)
}

// close removes all of it. Errors are for nobody: what is left is left to the
// next run.
func (y *yard) close() {
	for _, dir := range y.disks {
		_ = command("umount", dir)
	}
	for _, node := range y.made {
		_ = ip("link", "del", y.port(node))
		_ = ip("netns", "del", y.space(node))
	}
	_ = ip("link", "del", y.name)
	_ = nft("delete table bridge " + y.rules.table + "\n")
}

// ip runs iproute2, nft the packet filter's command with a script.
func ip(args ...string) error { return command("ip", args...) }

func nft(script string) error { return commandReading(script, "nft", "-f", "-") }

func command(name string, args ...string) error { return commandReading("", name, args...) }

// commandReading runs a short command; the error holds what it said.
func commandReading(input, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

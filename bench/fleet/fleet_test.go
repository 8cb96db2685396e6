package fleet

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
)

func TestFreePortsAreDistinctAndBelowTheEphemeralRange(t *testing.T) {
	taken := map[int]bool{}
	ports, err := freePorts(loopback, 40, taken)
	if err != nil {
		t.Fatal(err)
	}
	more, err := freePorts(loopback, 40, taken)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range append(ports, more...) {
		if seen[p] || p < firstPort || p >= lastPort {
			t.Errorf("port %d", p)
		}
		seen[p] = true
	}
}

func TestSocketInode(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 20 4 30 10 -1
   2: 0100007F:C350 0100007F:1F90 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0
`
	if inode, ok := socketInode(strings.NewReader(table), 8080); !ok || inode != "222" {
		t.Errorf("port 8080: %q, %v; want the connected socket 222", inode, ok)
	}
	if inode, ok := socketInode(strings.NewReader(table), 50000); ok {
		t.Errorf("port 50000: %q; a socket without an inode has no owner", inode)
	}
}

func TestSocketOwnerFindsThisProcess(t *testing.T) {
	client, _ := connect(t, echo(t))
	port := client.LocalAddr().(*net.TCPAddr).Port
	pid, ok := socketOwner(port, map[int]string{os.Getpid(): "me"})
	if !ok || pid != os.Getpid() {
		t.Errorf("owner %d, %v", pid, ok)
	}
}

// echo serves whoever connects with what they send, until the test ends.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); _, _ = io.Copy(c, c) }()
		}
	}()
	return ln.Addr().String()
}

func connect(t *testing.T, addr string) (*net.TCPConn, func(string) error) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	// exchange sends a text and waits a moment for it to come back.
	exchange := func(text string) error {
		if _, err := io.WriteString(c, text); err != nil {
			return err
		}
		_ = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		_, err := io.ReadFull(c, make([]byte, len(text)))
		return err
	}
	return c.(*net.TCPConn), exchange
}

// relayed starts a relay named a → b before an echo server.
func relayed(t *testing.T) (l *links, addr string) {
	t.Helper()
	ports, err := freePorts(loopback, 1, map[int]bool{})
	if err != nil {
		t.Fatal(err)
	}
	addr = "127.0.0.1:" + strconv.Itoa(ports[0])
	l = newLinks()
	t.Cleanup(l.close)
	if err := l.listen(addr, echo(t), "b", GossipPlane, func(net.Addr) string { return "a" }); err != nil {
		t.Fatal(err)
	}
	return l, addr
}

func TestRelayCarriesBothWays(t *testing.T) {
	_, addr := relayed(t)
	_, exchange := connect(t, addr)
	if err := exchange("hello"); err != nil {
		t.Error(err)
	}
}

// TestCutHoldsBytesAndHealDeliversThem, for each direction alone.
func TestCutHoldsBytesAndHealDeliversThem(t *testing.T) {
	for _, cut := range []pair{{"a", "b"}, {"b", "a"}} {
		t.Run(cut.from+" to "+cut.to, func(t *testing.T) {
			l, addr := relayed(t)
			c, exchange := connect(t, addr)
			if err := exchange("before"); err != nil {
				t.Fatal(err)
			}
			l.set(cut.from, cut.to, false)
			l.set(cut.from, cut.to, false)
			if err := exchange("late"); err == nil {
				t.Fatal("an answer came through a cut")
			}
			l.set(cut.from, cut.to, true)
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			buf := make([]byte, 4)
			if _, err := io.ReadFull(c, buf); err != nil || !bytes.Equal(buf, []byte("late")) {
				t.Errorf("after healing: %q, %v", buf, err)
			}
		})
	}
}

func TestRelayPassesOnTheEnd(t *testing.T) {
	_, addr := relayed(t)
	c, exchange := connect(t, addr)
	if err := exchange("hello"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("read %d, %v; want the end", n, err)
	}
}

// TestRelayRefusesStrangers: a connection that no node made cannot be cut, so it is not carried.
func TestRelayRefusesStrangers(t *testing.T) {
	ports, err := freePorts(loopback, 1, map[int]bool{})
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + strconv.Itoa(ports[0])
	l := newLinks()
	t.Cleanup(l.close)
	if err := l.listen(addr, echo(t), "b", GossipPlane, func(net.Addr) string { return "" }); err != nil {
		t.Fatal(err)
	}
	_, exchange := connect(t, addr)
	if exchange("hello") == nil {
		t.Error("a stranger was carried")
	}
}

// TestNodeLife drives a process that is no rlnode through all that is done to nodes.
func TestNodeLife(t *testing.T) {
	n := newNode("a", loopback, []int{1, 2, 3, 4})
	n.dir = t.TempDir()
	n.args = []string{"sh", "-c", `trap "exit 0" TERM; echo up $$; while :; do sleep 0.01; done`}
	if err := n.Kill(); err == nil {
		t.Error("killed a node that is down")
	}
	for _, end := range []func() error{
		n.Kill,
		func() error { waitForLog(t, n); return n.Stop(5 * time.Second) },
		func() error { _ = n.Pause(); return n.Kill() },
	} {
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
		pid := n.PID()
		if n.Start() == nil {
			t.Error("started twice")
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		if n.PID() != 0 || syscall.Kill(pid, 0) == nil {
			t.Errorf("process %d is still there", pid)
		}
	}
}

// waitForLog waits until the process has set its trap and written its line.
func waitForLog(t *testing.T, n *Node) {
	t.Helper()
	want := "up " + strconv.Itoa(n.PID()) + "\n"
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if log, _ := os.ReadFile(n.Log()); strings.Contains(string(log), want) {
			return
		}
	}
	t.Fatal("the process wrote nothing")
}

func TestStopReportsABadEnd(t *testing.T) {
	n := newNode("a", loopback, []int{1, 2, 3, 4})
	n.dir = t.TempDir()
	n.args = []string{"sh", "-c", `trap "exit 7" TERM; echo up $$; while :; do sleep 0.01; done`}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	waitForLog(t, n)
	if err := n.Stop(5 * time.Second); err == nil || !strings.Contains(err.Error(), "exit code 7") {
		t.Errorf("error %v, want one about exit code 7", err)
	}
}

func TestReplicasAreComparedAtEqualIndex(t *testing.T) {
	member := func(node string, applied, chain uint64) *pb.ReplicaStatus {
		return &pb.ReplicaStatus{Node: node, Applied: applied, Chain: chain}
	}
	group := func(m ...*pb.ReplicaStatus) *pb.GroupStatus { return &pb.GroupStatus{Id: 1, Members: m} }
	cases := []struct {
		name   string
		polls  []*pb.GroupStatus
		met    bool
		differ int
	}{
		{"equal", []*pb.GroupStatus{group(member("a", 9, 1), member("b", 9, 1), member("c", 9, 1))}, true, 0},
		{"one behind", []*pb.GroupStatus{group(member("a", 9, 1), member("b", 8, 2), member("c", 9, 1))}, false, 0},
		{"always one behind, all seen at 9", []*pb.GroupStatus{
			group(member("a", 9, 1), member("b", 8, 2), member("c", 9, 1)),
			group(member("a", 10, 3), member("b", 9, 1), member("c", 10, 3)),
		}, true, 0},
		{"one differs", []*pb.GroupStatus{group(member("a", 9, 1), member("b", 9, 2), member("c", 9, 1))}, true, 2},
		{"one differs, seen later", []*pb.GroupStatus{
			group(member("a", 9, 1), member("b", 8, 2)),
			group(member("a", 10, 3), member("b", 9, 7)),
		}, true, 1},
		{"nobody", []*pb.GroupStatus{group()}, false, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			seen := sightings{}
			var differ []string
			for _, g := range c.polls {
				differ = append(differ, seen.add(g)...)
			}
			if met := seen.met(c.polls[0]); met != c.met || len(differ) != c.differ {
				t.Errorf("met %v, differ %q; want %v and %d", met, differ, c.met, c.differ)
			}
		})
	}
}

func TestArgsFollowTheCommandLine(t *testing.T) {
	f := &Fleet{ports: map[int]bool{}, cfg: Config{Binary: "bin/rlnode", Dir: t.TempDir(), Nodes: 3, Policies: "p.yaml", Relayed: true, Flags: []string{"--groups", "1"}}}
	if err := f.prepare(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	got := strings.Join(f.Nodes[1].args, " ")
	for _, want := range []string{
		"bin/rlnode serve --name b", "--bootstrap-expect 3", "--policies p.yaml", "--groups 1",
		"--advertise-peer " + f.Nodes[1].relay, "--join " + f.Nodes[0].gossipRelay + "," + f.Nodes[1].gossipRelay,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if err := f.Part([]string{"a", "b"}, false); err != nil {
		t.Error(err)
	}
	for _, p := range []pair{{"a", "c"}, {"c", "a"}, {"b", "c"}, {"c", "b"}, {"a", "b"}, {"b", "a"}} {
		if open := f.links.gate(p.from, p.to, PeerPlane).isOpen(); open != (p.from != "c" && p.to != "c") {
			t.Errorf("%s to %s is open: %v", p.from, p.to, open)
		}
	}
	if err := (&Fleet{}).Cut("a"); err == nil {
		t.Error("cut a fleet without relays")
	}
}

// TestForgottenNodesAreNotListed: what has left is not asked, and a list in use stays as it is.
func TestForgottenNodesAreNotListed(t *testing.T) {
	f := &Fleet{ports: map[int]bool{}, cfg: Config{Binary: "bin/rlnode", Dir: t.TempDir(), Nodes: 3}}
	if err := f.prepare(); err != nil {
		t.Fatal(err)
	}
	before := f.List()
	f.Forget(f.Nodes[1])
	if len(f.GRPC()) != 2 || f.Node("b") != nil || f.Node("c") == nil || before[1].Name != "b" {
		t.Errorf("listed are %v, before %v", f.GRPC(), before)
	}
	n, err := f.make()
	if err != nil || n.Name != "d" {
		t.Errorf("the next node is %v, %v; want a name never used", n, err)
	}
}

// TestPacketsAreRelayedAndCut: they are counted, dropped while cut, and refused from strangers.
func TestPacketsAreRelayedAndCut(t *testing.T) {
	ports, err := freePorts(loopback, 1, map[int]bool{})
	if err != nil {
		t.Fatal(err)
	}
	addr := "127.0.0.1:" + strconv.Itoa(ports[0])
	target := listenUDP(t)
	node, stranger := listenUDP(t), listenUDP(t)
	own := node.LocalAddr().(*net.UDPAddr).Port
	l := newLinks()
	t.Cleanup(l.close)
	err = l.listenPackets(addr, target.LocalAddr().String(), "b", func(from net.Addr) string {
		if from.(*net.UDPAddr).Port == own {
			return "a"
		}
		return ""
	})
	if err != nil {
		t.Fatal(err)
	}
	relay, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	arrives := func(from net.PacketConn) bool {
		if _, err := from.WriteTo([]byte("hello"), relay); err != nil {
			t.Fatal(err)
		}
		_ = target.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		n, _, err := target.ReadFrom(make([]byte, 16))
		return err == nil && n == 5
	}
	if !arrives(node) || arrives(stranger) {
		t.Error("packets of a node do not arrive, or those of a stranger do")
	}
	l.set("a", "b", false)
	if arrives(node) {
		t.Error("a packet came through a cut")
	}
	l.set("a", "b", true)
	if !arrives(node) || l.gate("a", "b", GossipPlane).packets.Load() != 2 {
		t.Errorf("after healing: %d packets counted, want 2", l.gate("a", "b", GossipPlane).packets.Load())
	}
}

func listenUDP(t *testing.T) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestParseStat(t *testing.T) {
	const line = "42 (rlnode) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 8 0 100 0 0"
	if _, err := parseStat("nonsense"); err == nil {
		t.Error("nonsense was parsed")
	}
	got, err := parseStat(line)
	if err != nil || got != 3*time.Second {
		t.Errorf("%v, %v; want 3s", got, err)
	}
}

func TestMetricSumsOverLabels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "# HELP x_total of x\nx_total{group=\"1\"} 2\nx_total{group=\"2\"} 3.5\nx_totals 9\ny 1\n")
	}))
	defer server.Close()
	n := &Node{Name: "a", HTTP: strings.TrimPrefix(server.URL, "http://")}
	for name, want := range map[string]float64{"x_total": 5.5, "y": 1, "none": 0} {
		if got, err := n.Metric(t.Context(), name); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
}

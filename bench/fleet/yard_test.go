package fleet

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRulesAreWrittenAsAWhole: what is open again leaves no rule.
func TestRulesAreWrittenAsAWhole(t *testing.T) {
	var last string
	r := &rules{
		table: "t", port: func(n string) string { return "p" + n }, apply: func(s string) error { last = s; return nil },
		blocked: map[pair][]Plane{}, lossy: map[pair]int{},
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(r.block(pair{"a", "b"}, AllPlanes, false))
	must(r.block(pair{"a", "c"}, GossipPlane, false))
	must(r.lose(pair{"c", "a"}, 30))
	for _, want := range []string{
		`iifname "pa" oifname "pb" drop`, `iifname "pa" oifname "pc" udp dport 7602 drop`,
		`iifname "pc" oifname "pa" numgen random mod 100 < 30 drop`,
	} {
		if !strings.Contains(last, want) {
			t.Errorf("no %q in\n%s", want, last)
		}
	}
	must(r.block(pair{"a", "b"}, AllPlanes, true))
	must(r.block(pair{"a", "c"}, GossipPlane, true))
	must(r.lose(pair{"c", "a"}, 0))
	if last != "flush chain bridge t cut\n" {
		t.Errorf("left over:\n%s", last)
	}
}

// TestOwnerOf reads the process out of names, and takes nobody else's.
func TestOwnerOf(t *testing.T) {
	for name, want := range map[string]int{"rl42.1": 42, "rl42.1a": 42, "rl42_1": 42, "rl.1": 0, "rlnode": 0, "rl42": 0, "eth0": 0, "": 0} {
		if pid, ok := ownerOf(name); pid != want || ok != (want > 0) {
			t.Errorf("%q: %d, %v; want %d", name, pid, ok, want)
		}
	}
	if dead("rl"+strconv.Itoa(os.Getpid())+".1") || dead("eth0") {
		t.Error("something alive, or not ours, is taken for dead")
	}
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	if !dead("rl" + strconv.Itoa(gone.Process.Pid) + ".1a") {
		t.Error("what a dead process left is not found")
	}
}

// TestYard makes two namespaces, and sees packets pass, cut, and all gone at the end.
func TestYard(t *testing.T) {
	if why := CanIsolate(); why != nil {
		t.Skip(why)
	}
	y, err := newYard(int(yards.Add(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer y.close()
	for i, name := range []string{"a", "b"} {
		if _, err := y.add(name, i); err != nil {
			t.Fatal(err)
		}
	}
	b := y.subnet.Addr().As4()
	b[3] = 11
	reaches := func() bool {
		args := append(y.inside("a")[1:], "bash", "-c", "echo x >/dev/tcp/"+net.IP(b[:]).String()+"/9")
		begun := time.Now()
		out, _ := exec.Command("timeout", append([]string{"0.5", "ip"}, args...)...).CombinedOutput()
		// Nobody listens: a refusal is an answer, silence is none.
		return strings.Contains(string(out), "refused") && time.Since(begun) < 500*time.Millisecond
	}
	if !reaches() {
		t.Error("a does not reach b")
	}
	if err := y.rules.block(pair{"b", "a"}, AllPlanes, false); err != nil {
		t.Fatal(err)
	}
	if reaches() {
		t.Error("b's answers reach a through a cut")
	}
	if err := y.rules.block(pair{"b", "a"}, AllPlanes, true); err != nil {
		t.Fatal(err)
	}
	if !reaches() {
		t.Error("a does not reach b after the healing")
	}
	y.close()
	if left := listed("ip", "netns"); slices.Contains(left, y.space("a")) {
		t.Errorf("left over: %v", left)
	}
	if _, err := net.InterfaceByName(y.name); err == nil {
		t.Error("the bridge is left over")
	}
}

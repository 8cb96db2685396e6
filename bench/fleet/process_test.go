package fleet

import (
	"runtime"
	"testing"
)

// TestProcessIsMeasuredAndEnded starts a program that is no node.
func TestProcessIsMeasuredAndEnded(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	n, err := Process("other", t.TempDir(), "sleep", "60")
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := CPU(n.PID()); err != nil {
		t.Error(err)
	}
	if held, err := n.Resident(); err != nil || held <= 0 {
		t.Errorf("%v bytes resident, %v", held, err)
	}
	if err := n.Kill(); err != nil || n.PID() != 0 {
		t.Errorf("%v, still %d", err, n.PID())
	}
	if _, err := n.Resident(); err == nil {
		t.Error("a process that is gone has memory")
	}
}

package fleet

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// socketOwner says which of some processes holds the connected TCP socket with
// that local port on 127.0.0.1. It reads Linux's /proc, so that a relay knows
// whose connection it carries without knowing the protocol on it.
func socketOwner(localPort int, pids map[int]string) (pid int, ok bool) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	inode, ok := socketInode(f, localPort)
	if !ok {
		return 0, false
	}
	want := "socket:[" + inode + "]"
	for pid := range pids {
		dir := fmt.Sprintf("/proc/%d/fd", pid)
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if link, err := os.Readlink(dir + "/" + fd.Name()); err == nil && link == want {
				return pid, true
			}
		}
	}
	return 0, false
}

// socketInode finds the inode of a loopback socket that is connected (not
// listening) in a table in the format of /proc/net/tcp.
func socketInode(table io.Reader, localPort int) (inode string, ok bool) {
	local := fmt.Sprintf("0100007F:%04X", localPort)
	const listening = "0A"
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) > 9 && f[1] == local && f[3] != listening && f[9] != "0" {
			return f[9], true
		}
	}
	return "", false
}

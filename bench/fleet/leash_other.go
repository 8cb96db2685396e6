//go:build !linux

package fleet

import "syscall"

// leash is how processes of nodes are started: in a group of their own, as an
// interrupt at the terminal is ours to handle. Only Linux kills them with us.
func leash() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

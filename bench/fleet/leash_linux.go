package fleet

import "syscall"

// leash is how processes of nodes are started: in a group of their own, as an
// interrupt at the terminal is ours to handle, and killed by the kernel when this
// process is, whatever killed it.
func leash() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

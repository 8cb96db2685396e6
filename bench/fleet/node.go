package fleet

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Node is one rlnode process and its fixed addresses, kept over restarts.
type Node struct {
	Name   string
	GRPC   string
	Peer   string
	Gossip string
	HTTP   string

	relay       string // what others dial instead of Peer, when relayed
	gossipRelay string // and instead of Gossip
	dir         string
	args        []string
	inside      []string // put before args: into its namespace
	around      []string // and before those: see Around
	env         []string // further variables
	clock       string   // file that tells the process how its test clock goes; empty: it has none

	mu   sync.Mutex // guards proc and down
	proc *os.Process
	down chan exit // of proc; holds its end once it has been waited for
}

// exit is how a process ended.
type exit struct {
	state *os.ProcessState
	err   error
}

// loopback is where nodes without namespaces are, and the relays before them.
const loopback = "127.0.0.1"

// How many ports newNode and relayAt want.
const (
	portsOfNode  = 4
	portsOfRelay = 2
)

func newNode(name, host string, ports []int) *Node {
	at := func(i int) string { return fmt.Sprintf("%s:%d", host, ports[i]) }
	return &Node{Name: name, GRPC: at(0), Peer: at(1), Gossip: at(2), HTTP: at(3)}
}

// relayAt says where the relays before a node listen.
func (n *Node) relayAt(host string, ports []int) {
	n.relay, n.gossipRelay = fmt.Sprintf("%s:%d", host, ports[0]), fmt.Sprintf("%s:%d", host, ports[1])
}

// dataDir is what --data-dir names.
func (n *Node) dataDir() string { return filepath.Join(n.dir, "data") }

// Wipe empties the data directory of a node that is down: started again it is
// another node of the same name.
func (n *Node) Wipe() error {
	if n.PID() != 0 {
		return fmt.Errorf("node %s runs", n.Name)
	}
	if err := os.RemoveAll(n.dataDir()); err != nil {
		return fmt.Errorf("empty the directory of node %s: %w", n.Name, err)
	}
	return nil
}

// With adds flags to the command line of later starts.
func (n *Node) With(flags ...string) { n.args = append(n.args, flags...) }

// Around puts a command before the command line of later starts, in place of what
// was put there before; nothing: none. It must not stay as a parent process.
func (n *Node) Around(command ...string) { n.around = command }

// Environ adds variables, each NAME=VALUE, to the environment of later starts.
func (n *Node) Environ(vars ...string) { n.env = append(n.env, vars...) }

// Signal sends a signal that does not end the process.
func (n *Node) Signal(s syscall.Signal) error { return n.signal(s) }

// Start starts the process; it is an error if it runs. Output is appended to
// the node's log file.
func (n *Node) Start() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc != nil {
		return fmt.Errorf("node %s runs already", n.Name)
	}
	log, err := os.OpenFile(n.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("log of node %s: %w", n.Name, err)
	}
	defer log.Close()
	line := slices.Concat(n.around, n.inside, n.args)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), n.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = leash()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start node %s: %w", n.Name, err)
	}
	n.proc, n.down = cmd.Process, make(chan exit, 1)
	down := n.down
	go func() {
		err := cmd.Wait()
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = nil
		}
		down <- exit{cmd.ProcessState, err}
	}()
	return nil
}

// Log is the path of the node's log file.
func (n *Node) Log() string { return filepath.Join(n.dir, "log") }

// PID is the process id, 0 when the node is down.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return 0
	}
	return n.proc.Pid
}

// Kill sends SIGKILL and waits until the process is gone.
func (n *Node) Kill() error {
	if err := n.signal(syscall.SIGKILL); err != nil {
		return err
	}
	_, err := n.wait(10 * time.Second)
	return err
}

// KillNow sends SIGKILL and returns at once; Kill or Stopped must follow.
func (n *Node) KillNow() error { return n.signal(syscall.SIGKILL) }

// Pause stops the process where it stands (SIGSTOP).
func (n *Node) Pause() error { return n.signal(syscall.SIGSTOP) }

// Resume lets a paused process run on (SIGCONT).
func (n *Node) Resume() error { return n.signal(syscall.SIGCONT) }

// Stop sends SIGTERM and waits; an exit code other than 0 is an error.
func (n *Node) Stop(timeout time.Duration) error {
	if err := n.signal(syscall.SIGTERM); err != nil {
		return err
	}
	return n.Ended(timeout)
}

// Ended waits for a process that ends by itself; an exit code other than 0 is an
// error.
func (n *Node) Ended(timeout time.Duration) error {
	state, err := n.wait(timeout)
	if err != nil {
		return err
	}
	if code := state.ExitCode(); code != 0 {
		return fmt.Errorf("node %s ended with exit code %d, want 0 (log %s)", n.Name, code, n.Log())
	}
	return nil
}

var errDown = errors.New("is down")

func (n *Node) signal(s syscall.Signal) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.proc == nil {
		return fmt.Errorf("node %s %w", n.Name, errDown)
	}
	if err := n.proc.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("node %s: %v: %w", n.Name, s, err)
	}
	return nil
}

// wait returns once the process has ended, and forgets it.
func (n *Node) wait(timeout time.Duration) (*os.ProcessState, error) {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down == nil {
		return nil, fmt.Errorf("node %s %w", n.Name, errDown)
	}
	select {
	case e := <-down:
		n.mu.Lock()
		n.proc, n.down = nil, nil
		n.mu.Unlock()
		return e.state, e.err
	case <-time.After(timeout):
		return nil, fmt.Errorf("node %s (pid %d) has not ended after %v", n.Name, n.PID(), timeout)
	}
}

// Logged says whether some line of the node's log holds all these texts.
func (n *Node) Logged(texts ...string) (bool, error) {
	log, err := os.ReadFile(n.Log())
	if err != nil {
		return false, fmt.Errorf("log of node %s: %w", n.Name, err)
	}
lines:
	for line := range strings.Lines(string(log)) {
		for _, t := range texts {
			if !strings.Contains(line, t) {
				continue lines
			}
		}
		return true, nil
	}
	return false, nil
}

// StartIfEnded starts the process if it runs no more, by whatever it ended.
func (n *Node) StartIfEnded() error {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down != nil {
		select {
		case e := <-down:
			down <- e // for wait, which forgets the process
			if _, err := n.wait(time.Second); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return n.Start()
}

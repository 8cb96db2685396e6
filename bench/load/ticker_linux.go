package load

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ticker is a timer of the kernel's that the runtime waits for as for a socket: to the
// microseconds, and without a thread that sleeps.
type ticker struct {
	file *os.File
	buf  [8]byte
}

// newTicker ticks every so often; nil if the kernel has none to give.
func newTicker(every time.Duration) *ticker {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	t := &ticker{file: os.NewFile(uintptr(fd), "timerfd")}
	step := unix.NsecToTimespec(int64(every))
	if unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: step, Value: step}, nil) != nil {
		t.close()
		return nil
	}
	return t
}

// wait returns true at the next tick, at once if one has passed since the last.
func (t *ticker) wait() bool {
	_, err := t.file.Read(t.buf[:])
	return err == nil
}

func (t *ticker) close() { _ = t.file.Close() }

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// burnMain is the process that burns, until its standard input ends, which its parent
// holds.
func burnMain(ctx context.Context, cores string) error {
	share, err := strconv.ParseFloat(cores, 64)
	if err != nil || share <= 0 {
		return fmt.Errorf("%q is no number of cores", cores)
	}
	ctx, stop := context.WithCancel(ctx)
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1)) // it ends with the process
		stop()
	}()
	burn(ctx, share)
	return nil
}

// burn uses so many cores, as far as it gets them, until ctx ends.
func burn(ctx context.Context, share float64) {
	var wg sync.WaitGroup
	threads := burners(share)
	began := time.Now()
	for range threads {
		wg.Go(func() {
			for ctx.Err() == nil {
				if used() >= share*time.Since(began).Seconds() {
					time.Sleep(burnSlice)
					continue
				}
				spin(burnSlice / 4)
			}
		})
	}
	wg.Wait()
}

// burnSlice is how long a burner rests once it has had its share: its bursts are as
// short as those of a busy server.
const burnSlice = time.Millisecond

// burners is how many threads use so many cores: more than it takes, as a server has
// more threads ready than cores, and as each has to wait for others.
func burners(share float64) int { return int(2*share) + 2 }

// used is the CPU time of this process, in seconds.
func used() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// spin computes for a while.
func spin(d time.Duration) {
	x := uint64(1)
	for end := time.Now().Add(d); time.Now().Before(end); {
		for range 1000 {
			x = mix(x)
		}
	}
}

// burner starts a process that uses so many cores. end ends it, and returns the CPU
// seconds that it got.
func burner(ctx context.Context, cores float64) (end func() (float64, error), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, burnCommand, fmt.Sprintf("%.3f", cores))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() (float64, error) {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			return 0, fmt.Errorf("burner: %w", err)
		}
		return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), nil
	}, nil
}

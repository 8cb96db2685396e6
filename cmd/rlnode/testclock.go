//go:build testclock

package main

import (
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/cluster"
)

// A build with this tag has a clock for group time that a test can bend. The
// variable RL_TEST_CLOCK names a file, "RATE JUMP" such as "1.5 10s", that is read
// at the start and at each SIGUSR1. No other build reads it.

// bent is a stretch of a clock that goes at one rate.
type bent struct {
	from time.Time // of the machine
	at   time.Time // what the clock said then
	rate float64
}

// bentClock may be read by any number of goroutines.
type bentClock struct{ now atomic.Pointer[bent] }

// Now is what the clock says. It never steps back.
func (c *bentClock) Now() time.Time { return c.now.Load().says(time.Now()) }

func (b *bent) says(now time.Time) time.Time {
	return b.at.Add(time.Duration(float64(now.Sub(b.from)) * b.rate))
}

// bend makes it jump ahead and then go at another rate. One goroutine calls it.
func (c *bentClock) bend(rate float64, jump time.Duration) {
	now := time.Now()
	c.now.Store(&bent{from: now, at: c.now.Load().says(now).Add(max(jump, 0)), rate: max(rate, 0)})
}

// follow bends the clock as the file says; a file that is not there or not whole
// changes nothing.
func (c *bentClock) follow(file string) {
	var rate float64
	var jump string
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if _, err := fmt.Sscan(string(text), &rate, &jump); err != nil {
		return
	}
	if d, err := time.ParseDuration(jump); err == nil {
		c.bend(rate, d)
	}
}

// seams gives the node the clock. The goroutine that follows the file ends with the
// process.
func seams() cluster.Seams {
	file := os.Getenv("RL_TEST_CLOCK")
	if file == "" {
		return cluster.Seams{}
	}
	var c bentClock
	now := time.Now()
	c.now.Store(&bent{from: now, at: now, rate: 1})
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	c.follow(file)
	go func() {
		for range asked {
			c.follow(file)
		}
	}()
	return cluster.Seams{Now: c.Now}
}

//go:build testclock

package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestBentClock goes faster, stands still and jumps, and never steps back.
func TestBentClock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	synctest.Test(t, func(t *testing.T) {
		var c bentClock
		begun := time.Now()
		c.now.Store(&bent{from: begun, at: begun, rate: 1})
		want := time.Duration(0)
		for _, step := range []struct {
			text string
			gain time.Duration // in the 10 s after it
		}{
			{"1 0s", 10 * time.Second},
			{"1.5 0s", 15 * time.Second},
			{"0 0s", 0},
			{"1 10s", 20 * time.Second},
			{"1 -10s", 10 * time.Second},
			{"nonsense", 10 * time.Second},
		} {
			if err := os.WriteFile(file, []byte(step.text), 0o644); err != nil {
				t.Fatal(err)
			}
			c.follow(file)
			time.Sleep(10 * time.Second)
			if want += step.gain; c.Now().Sub(begun) != want {
				t.Fatalf("after %q the clock went on by %v, want %v", step.text, c.Now().Sub(begun), want)
			}
		}
	})
}

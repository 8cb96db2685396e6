package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
)

// A load of several times what nodes can decide needs processors of its own: on the
// same ones it would take from the nodes what it is to measure.

// halves splits the processors: the first half for nodes, the rest for the load. With
// one processor there is nothing to split.
func halves(cores int) (nodes, load string, ok bool) {
	if cores < 2 {
		return "", "", false
	}
	return span(0, cores/2-1), span(cores/2, cores-1), true
}

// span is a list of processors as taskset takes it.
func span(from, to int) string {
	if from == to {
		return strconv.Itoa(from)
	}
	return fmt.Sprintf("%d-%d", from, to)
}

// pin keeps this process to some processors until back is called. It needs taskset.
func pin(cores string, count int) (back func() error, err error) {
	if err := affinity(cores); err != nil {
		return nil, err
	}
	before := runtime.GOMAXPROCS(count)
	return func() error {
		runtime.GOMAXPROCS(before)
		return affinity(span(0, runtime.NumCPU()-1))
	}, nil
}

// affinity moves all threads of this process.
func affinity(cores string) error {
	out, err := exec.Command("taskset", "-a", "-p", "-c", cores, strconv.Itoa(os.Getpid())).CombinedOutput()
	if err != nil {
		return fmt.Errorf("taskset: %w: %s", err, out)
	}
	return nil
}

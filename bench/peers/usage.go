package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// usage is CPU time used up to now, in seconds.
type usage struct {
	at      time.Time
	client  float64
	servers []float64
	machine float64 // by everybody, all processors
	err     error
}

func (j *Job) usage() usage {
	u := usage{at: time.Now()}
	var self syscall.Rusage
	u.err = syscall.Getrusage(syscall.RUSAGE_SELF, &self)
	u.client = time.Duration(self.Utime.Nano() + self.Stime.Nano()).Seconds()
	for _, pid := range j.PIDs {
		used, err := fleet.CPU(pid)
		if err != nil {
			u.err = err
		}
		u.servers = append(u.servers, used.Seconds())
	}
	busy, err := machineBusy()
	if err != nil {
		u.err = err
	}
	u.machine = busy
	return u
}

// spent fills in what was used between two moments.
func (o *Outcome) spent(began, ended *usage) {
	o.ClientCPU = ended.client - began.client
	known := o.ClientCPU
	for i := range ended.servers {
		used := ended.servers[i] - began.servers[i]
		o.ServerCPU = append(o.ServerCPU, used)
		known += used
	}
	if whole := ended.at.Sub(began.at).Seconds() * float64(processors()); whole > 0 {
		o.Foreign = max(0, ended.machine-began.machine-known) / whole
	}
	if began.err == nil {
		began.err = ended.err
	}
}

// machineBusy is the time all processors together were not idle, from /proc/stat in
// hundredths of a second.
func machineBusy() (float64, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		return 0, err
	}
	return parseBusy(line)
}

// parseBusy reads the line of all processors: user, nice, system, idle, iowait, irq,
// softirq, steal, and guests that are in user already.
func parseBusy(line string) (float64, error) {
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("not the first line of /proc/stat: %q", line)
	}
	ticks := 0.0
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		v, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return 0, err
		}
		ticks += v
	}
	return ticks / 100, nil
}

package main

import (
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
	busy, err := fleet.MachineCPU()
	if err != nil {
		u.err = err
	}
	u.machine = busy.Seconds()
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

package main

import (
	"os/exec"
	"runtime"
	"strings"

	"github.com/ringlimit/ringlimit/bench/fleet"
)

// Machine is where it was measured, and what.
type Machine struct {
	fleet.Machine
	Redis string `json:"redis"`
	Ours  string `json:"ringlimit"`
}

func processors() int { return runtime.NumCPU() }

// thisMachine looks around; what cannot be found is empty.
func thisMachine(rlnode string) Machine {
	return Machine{fleet.ThisMachine(), said("redis-server", "--version"), said(rlnode, "--version")}
}

// said is the first line that a command prints.
func said(name string, args ...string) string {
	out, _ := exec.Command(name, args...).Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

package main

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Machine is where it was measured.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Redis  string `json:"redis"`
	Ours   string `json:"ringlimit"`
	Date   string `json:"date"`
}

func processors() int { return runtime.NumCPU() }

// thisMachine looks around; what cannot be found is empty.
func thisMachine(rlnode string) Machine {
	return Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: processors(), Memory: field("/proc/meminfo", "MemTotal"),
		Kernel: said("uname", "-sr"), Go: runtime.Version(), Redis: said("redis-server", "--version"),
		Ours: said(rlnode, "--version"), Date: time.Now().UTC().Format(time.RFC3339),
	}
}

// field is the first value of that name in a file of lines "name: value".
func field(file, name string) string {
	text, _ := os.ReadFile(file) // absent: empty
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// said is the first line that a command prints.
func said(name string, args ...string) string {
	out, _ := exec.Command(name, args...).Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

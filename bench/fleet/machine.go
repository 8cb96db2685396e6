package fleet

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Machine is where something was measured.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory string `json:"memory"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Date   string `json:"date"`
}

// ThisMachine looks around; what cannot be found is empty.
func ThisMachine() Machine {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return Machine{
		CPU: field("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(), Memory: field("/proc/meminfo", "MemTotal"),
		Kernel: strings.TrimSpace(string(kernel)), Go: runtime.Version(), Date: time.Now().UTC().Format(time.RFC3339),
	}
}

// field is the first value of that name in a file of lines "name: value".
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// MachineCPU is the CPU time that everything on this machine has used since it
// started, from Linux.
func MachineCPU() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return parseMachine(first)
}

// parseMachine adds up the first line of /proc/stat, in hundredths of a second,
// without what was idle or waited.
func parseMachine(line string) (time.Duration, error) {
	fields := strings.Fields(line)
	const idle, iowait, last = 4, 5, 8 // those after count guests a second time
	if len(fields) <= last || fields[0] != "cpu" {
		return 0, fmt.Errorf("not the first line of /proc/stat: %q", line)
	}
	var ticks int64
	for i := 1; i <= last; i++ {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		if i != idle && i != iowait {
			ticks += n
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

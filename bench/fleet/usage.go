package fleet

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPU is the CPU time that the node's process has used since it began, in steps
// of 10 ms.
func (n *Node) CPU() (time.Duration, error) {
	used, err := CPU(n.PID())
	if err != nil {
		return 0, fmt.Errorf("CPU time of node %s: %w", n.Name, err)
	}
	return used, nil
}

// CPU is the CPU time that a process has used since it began, in steps of 10 ms.
func CPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(string(stat))
}

// Resident is the anonymous memory of the node's process, in bytes, from Linux.
func (n *Node) Resident() (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.PID()))
	if err != nil {
		return 0, fmt.Errorf("memory of node %s: %w", n.Name, err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 64)
			return kb * 1024, err
		}
	}
	return 0, fmt.Errorf("process of node %s tells no RssAnon", n.Name)
}

// parseStat reads user and system time from a line of /proc/<pid>/stat, where
// Linux counts them in hundredths of a second.
func parseStat(line string) (time.Duration, error) {
	_, rest, ok := strings.Cut(line, ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	const utime, stime = 11, 12 // counted after the name
	if !ok || len(fields) <= stime {
		return 0, fmt.Errorf("not a line of /proc/<pid>/stat: %q", line)
	}
	var ticks int64
	for _, i := range []int{utime, stime} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// Metric returns the sum of a metric over all its labels, or of the one series that name
// is with labels, as the node's /metrics tells it; 0 if it is not there.
func (n *Node) Metric(ctx context.Context, name string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.HTTP+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("metrics of node %s: %w", n.Name, err)
	}
	defer resp.Body.Close()
	sum := 0.0
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		series, value, ok := strings.Cut(lines.Text(), " ")
		if !strings.Contains(name, "{") {
			series, _, _ = strings.Cut(series, "{")
		}
		if !ok || series != name {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("metric %s of node %s: %w", name, n.Name, err)
		}
		sum += v
	}
	return sum, nil
}

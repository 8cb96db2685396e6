package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// ours is how functions of the package of buckets begin in a profile.
const ours = "github.com/ringlimit/ringlimit/bucket."

// parts reads what is alive from the text of a heap profile: the bytes of buckets, and
// those of stored results. Each is told by the innermost function of the package bucket
// that allocated it. A profile is a sample: of some hundred MB it is right to a few
// per cent.
func parts(page io.Reader) (cells, results float64, err error) {
	lines := bufio.NewScanner(page)
	lines.Buffer(nil, 1<<20)
	rate := 0.0 // mean bytes between two samples
	bytes := 0.0
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "heap profile:"):
			_, twice, _ := strings.Cut(line, "heap/")
			if rate, err = strconv.ParseFloat(twice, 64); err != nil {
				return 0, 0, fmt.Errorf("no rate in %q", line)
			}
			rate /= 2
		case strings.Contains(line, " @ "):
			bytes = sampled(line, rate)
		case bytes > 0 && strings.Contains(line, ours):
			_, function, _ := strings.Cut(line, ours)
			switch {
			case anyPrefix(function, "newSegment", "(*segment)", "(*slot)", "(*block)"):
				cells += bytes
			case anyPrefix(function, "(*pool)", "(*index)", "newHeads", "(*ids)"):
				results += bytes
			}
			bytes = 0 // it is told; further functions of this stack do not count
		}
	}
	if err := lines.Err(); err != nil {
		return 0, 0, err
	}
	if rate == 0 {
		return 0, 0, fmt.Errorf("not a heap profile")
	}
	return cells, results, nil
}

// sampled is how many bytes a line "objects: bytes [allocated…] @ stack" stands for.
func sampled(line string, rate float64) float64 {
	var objects, bytes float64
	if n, _ := fmt.Sscanf(line, "%f: %f", &objects, &bytes); n < 2 || objects == 0 || rate == 0 {
		return 0
	}
	return bytes / (1 - math.Exp(-bytes/objects/rate))
}

func anyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

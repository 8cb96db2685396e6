package check

// Sample is what one process uses.
type Sample struct {
	Node       string
	Goroutines int
	Files      int   // open descriptors
	Memory     int64 // resident bytes
}

// Slack is how much more than before a resource may be, beside a fifth of it: what
// few goroutines, files or pages come and go in a process at rest.
type Slack struct {
	Goroutines, Files int
	Memory            int64
}

// DefaultSlack is for nodes of a few groups.
var DefaultSlack = Slack{Goroutines: 20, Files: 10, Memory: 16 << 20}

// Resources holds that after a fault, and a time to settle, each process uses no more than
// before and a fifth (I16). Processes in only one of the two lists are left out. A
// process that was started anew should use less memory, so only more is a finding.
// Cost: linear.
func Resources(before, after []Sample, slack Slack) Verdict {
	v := Verdict{Checker: "resources"}
	by := make(map[string]Sample)
	for _, s := range before {
		by[s.Node] = s
	}
	for _, s := range after {
		b, ok := by[s.Node]
		if !ok {
			continue
		}
		v.Checked++
		grew(&v, s.Node, "goroutines", int64(b.Goroutines), int64(s.Goroutines), int64(slack.Goroutines))
		grew(&v, s.Node, "open files", int64(b.Files), int64(s.Files), int64(slack.Files))
		grew(&v, s.Node, "bytes of memory", b.Memory, s.Memory, slack.Memory)
	}
	return v
}

func grew(v *Verdict, node, what string, before, after, slack int64) {
	if after > before+before/5+slack {
		v.find("", nil, "node %s has %d %s, and had %d before the fault", node, after, what, before)
	}
}

package simulate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// Summary counts outcomes by policy.
type Summary struct {
	total, none count
	policies    map[string]*count
}

// count is what became of the requests that a policy applied to.
type count struct {
	requests, admitted, denied uint64
	spared                     uint64 // it would have admitted; another policy denied
	shadow                     bool
}

func (c *count) add(ok, admitted bool) {
	c.requests++
	switch {
	case !ok:
		c.denied++
	case !admitted:
		c.spared++
	default:
		c.admitted++
	}
}

// Add counts one outcome.
func (s *Summary) Add(o *Outcome) {
	s.total.add(o.Allowed, o.Allowed)
	if o.Head < 0 {
		s.none.add(o.Allowed, o.Allowed)
	}
	if s.policies == nil {
		s.policies = make(map[string]*count)
	}
	for i := range o.Limits {
		l := &o.Limits[i]
		c := s.policies[l.PolicyID]
		if c == nil {
			c = &count{shadow: l.Shadow}
			s.policies[l.PolicyID] = c
		}
		c.add(l.Allowed, o.Allowed)
	}
}

// WriteTo writes the counts as a table. A request counts in the row of each
// policy that applied to it.
func (s *Summary) WriteTo(out io.Writer) (int64, error) {
	counted := &counter{out: out}
	w := tabwriter.NewWriter(counted, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tREQUESTS\tADMITTED\tDENIED\tSPARED\t")
	row := func(name string, c *count, note string) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\n", name, c.requests, c.admitted, c.denied, c.spared, note)
	}
	for _, id := range slices.Sorted(maps.Keys(s.policies)) {
		note := ""
		if s.policies[id].shadow {
			note = "shadow: what it would do"
		}
		row(id, s.policies[id], note)
	}
	if s.none.requests > 0 {
		row("(no policy)", &s.none, "")
	}
	row("(all)", &s.total, "")
	err := w.Flush()
	return counted.n, err
}

// counter counts what was written.
type counter struct {
	out io.Writer
	n   int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	c.n += int64(n)
	return n, err
}

package trial

import (
	"context"

	"github.com/ringlimit/ringlimit/bench/check"
)

// samples are what the nodes use now; those that do not tell are left out.
func (s *scene) samples(ctx context.Context) (list []check.Sample) {
	for _, n := range s.fleet.List() {
		goroutines, err := n.Metric(ctx, "go_goroutines")
		if err != nil {
			continue
		}
		files, err := n.Metric(ctx, "process_open_fds")
		if err != nil {
			continue
		}
		list = append(list, check.Sample{Node: n.Name, Goroutines: int(goroutines), Files: int(files)})
	}
	return list
}

// resources waits until all nodes use no more than before, for a while. Memory is
// left out: the act filled the tables.
func (s *scene) resources(ctx context.Context, before []check.Sample) check.Verdict {
	end := s.history.now() + goneBack
	for {
		v := check.Resources(before, s.samples(ctx), check.DefaultSlack)
		if len(v.Findings) == 0 || s.history.now() > end || !waitFor(ctx, calm) {
			return v
		}
	}
}

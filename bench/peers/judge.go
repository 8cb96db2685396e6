package main

import (
	"fmt"
	"math"
)

// mostForeign is the share of the machine that others may use beside a measurement.
const mostForeign = 0.10

// disturbed says whether others used too much: the same command measures it again.
func (s *Sample) disturbed() bool { return s.Foreign > mostForeign }

// void says why a sample proves nothing: it failed, its answers were errors, others
// were admitted than should be, or other processes took part. Empty: it counts.
func (s *Sample) void() string {
	answered := float64(s.Admitted + s.Denied)
	switch {
	case s.Failed != "":
		return s.Failed
	case s.disturbed():
		return fmt.Sprintf("others used %.0f %% of the machine", 100*s.Foreign)
	case answered == 0:
		return "nothing was answered"
	case float64(s.Errors) > 0.001*float64(s.Requests):
		return fmt.Sprintf("%.1f %% errors, the first: %s", 100*float64(s.Errors)/float64(s.Requests), s.Error)
	}
	want, got := s.Kind.share(), float64(s.Admitted)/answered
	if math.Abs(got-want) > 0.005+4*math.Sqrt(want*(1-want)/answered) {
		return fmt.Sprintf("%.1f %% admitted, want %.1f %%", 100*got, 100*want)
	}
	return ""
}

package cluster

import (
	"strings"
	"testing"
	"time"
)

func TestControlLagIsHeldAgainstWhoDoesNotFollow(t *testing.T) {
	begun := time.Unix(0, 0)
	var c controlLag
	at := func(after time.Duration, a, b uint64, incarnation string) (late bool) {
		c.observe(map[string]applied{"a": {"1", a}, "b": {incarnation, b}}, begun.Add(after))
		if c.late("a", begun.Add(after)) {
			t.Errorf("after %s: the node that is ahead is late", after)
		}
		return c.late("b", begun.Add(after))
	}
	for _, step := range []struct {
		after       time.Duration
		a, b        uint64
		incarnation string
		late        bool
	}{
		{0, 10, 9, "1", false},
		{controlLagAllowed, 20, 9, "1", false},
		{controlLagAllowed + 1, 20, 10, "1", false}, // it has what others had at 0, and is behind anew
		{2 * controlLagAllowed, 30, 19, "1", false},
		{2*controlLagAllowed + 2, 30, 19, "1", true},
		{2*controlLagAllowed + 3, 30, 20, "1", false},
		{3*controlLagAllowed + 3, 30, 20, "1", false},
		{3*controlLagAllowed + 4, 30, 0, "2", false}, // restarted: it has its time again
		{4*controlLagAllowed + 5, 30, 29, "2", true},
		{4*controlLagAllowed + 6, 30, 30, "2", false},
	} {
		if late := at(step.after, step.a, step.b, step.incarnation); late != step.late {
			t.Errorf("after %s: late is %t", step.after, late)
		}
	}
}

// TestStatusNamesAVoterThatDoesNotFollow: "all is well" with such a voter would let the
// next node be restarted, and the control group be without a majority meanwhile.
func TestStatusNamesAVoterThatDoesNotFollow(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.boot()
		time.Sleep(2 * controlLagAllowed)
		n := s.nodes["a"]
		if why := n.votersMissing(n.control.State()); why != "" {
			t.Fatal(why)
		}
		h, _ := n.table.last("b")
		n.lag.observe(map[string]applied{"a": {"1", 2}, "b": {h.incarnation, 1}}, time.Now().Add(-2*controlLagAllowed))
		r, err := n.Status(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Healthy || !strings.Contains(strings.Join(r.Problems, "; "), "2 of 3 voters (a, c): b applied nothing new") {
			t.Errorf("healthy %t: %q", r.Healthy, r.Problems)
		}
	})
}

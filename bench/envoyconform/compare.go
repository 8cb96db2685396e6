package main

import (
	"fmt"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// read is what is compared of an answer; nil for an error.
func read(r *rls.RateLimitResponse, err error) ([]status, error) {
	if err != nil {
		return nil, nil
	}
	out := make([]status, len(r.GetStatuses()))
	over := false
	for i, s := range r.GetStatuses() {
		out[i] = status{code: s.GetCode(), remaining: s.GetLimitRemaining(), reset: -1}
		if l := s.GetCurrentLimit(); l != nil {
			out[i].limited, out[i].amount, out[i].unit, out[i].name = true, l.GetRequestsPerUnit(), l.GetUnit(), l.GetName()
		}
		if d := s.GetDurationUntilReset(); d != nil {
			out[i].reset = d.GetSeconds()
		}
		over = over || s.GetCode() == rls.RateLimitResponse_OVER_LIMIT
	}
	if over != (r.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT) || !over && r.GetOverallCode() != rls.RateLimitResponse_OK {
		return nil, fmt.Errorf("overall code %s with the statuses %+v", r.GetOverallCode(), out)
	}
	return out, nil
}

// same compares an answer with a prediction of what is answered with some differences.
// What is unlimited we tell in one of two ways.
func same(got, want []status, with set) bool {
	if len(got) != len(want) || (got == nil) != (want == nil) {
		return false
	}
	for i := range got {
		g, w := got[i], want[i]
		if with.has(unlimitedTold) && !w.limited && w.code == rls.RateLimitResponse_OK {
			if g.code != w.code || g.limited && (g.amount != 1e9 || g.unit != rls.RateLimitResponse_RateLimit_UNKNOWN) || !g.limited && g.remaining != 0 {
				return false
			}
			continue
		}
		g.name, w.name = "", ""
		if g != w {
			return false
		}
	}
	return true
}

// sameCodes compares the codes alone.
func sameCodes(a, b []status) bool {
	for i := range a {
		if i >= len(b) || a[i].code != b[i].code {
			return false
		}
	}
	return len(a) == len(b)
}

// outcome is what became of a case.
type outcome struct {
	refused bool   // the reference does not load the configuration
	equal   bool   // all answers are the same
	answers int    // how many there were …
	alike   int    // … how many of them are the same in all …
	codes   int    // … and how many in what they let through
	why     set    // the differences without which ours would be other answers
	fault   string // what no documented difference explains
}

// play asks both the same, and judges every answer by the model.
func play(c *testCase, r *reference) (out outcome, err error) {
	files := c.files()
	if err := r.begin(files, c.asks[0].at); err != nil {
		return outcome{refused: true}, nil
	}
	o, err := newOurs(files, c.algorithm)
	if err != nil {
		return out, fmt.Errorf("seed %d: import: %w", c.seed, err)
	}
	plain, all := newModel(c, o.index, noneOfThem), newModel(c, o.index, allOfThem)
	out.equal = true
	answers := make([][]status, len(c.asks))
	for i, a := range c.asks {
		theirs, err := read(r.ask(&a))
		if err != nil {
			return out, fmt.Errorf("seed %d: the reference: %w", c.seed, err)
		}
		mine, err := read(o.ask(&a))
		if err != nil {
			return out, fmt.Errorf("seed %d: ours: %w", c.seed, err)
		}
		answers[i] = mine
		out.answers++
		if same(mine, theirs, noneOfThem) {
			out.alike++
		} else {
			out.equal = false
		}
		if sameCodes(mine, theirs) {
			out.codes++
		}
		if want := plain.answer(&a); !same(theirs, want, noneOfThem) && out.fault == "" {
			out.fault = fmt.Sprintf("the model of the reference is wrong: answer %d to %v\n  is     %+v\n  modelled %+v", i, a.in, theirs, want)
		}
		if want := all.answer(&a); !same(mine, want, allOfThem) && out.fault == "" {
			out.fault = fmt.Sprintf("answer %d to %v\n  is        %+v\n  reference %+v\n  want      %+v", i, a.in, mine, theirs, want)
		}
	}
	if !out.equal {
		out.why = needed(c, o, answers)
	}
	return out, nil
}

// needed are the differences without any of which some answer would be another one.
func needed(c *testCase, o *ours, answers [][]status) (why set) {
	for d := range differences {
		less := allOfThem.without(d)
		m := newModel(c, o.index, less)
		for i := range c.asks {
			if !same(answers[i], m.answer(&c.asks[i]), less) {
				why |= 1 << d
				break
			}
		}
	}
	return why
}

package load

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// answerer answers every call after a while, and position i with its i-th kind of answer.
type answerer struct {
	takes time.Duration
	kinds []Answer
}

func (a answerer) Caller() Caller { return a }

func (a answerer) Ask(_ context.Context, from, to int64, answers []Answer) []Answer {
	time.Sleep(a.takes)
	for i := from; i < to; i++ {
		answers = append(answers, a.kinds[int(i)%len(a.kinds)])
	}
	return answers
}

func TestClosedLoopCountsEveryAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := errors.New("too late")
		target := answerer{10 * time.Millisecond, []Answer{{Admitted: true}, {Admitted: true}, {}, {Err: late}}}
		began, ended := 0, 0
		cfg := Config{Requests: 400, Concurrency: 4, Batch: 10, Keys: 1, Timeout: time.Second}
		cfg.Window = func() func() { began++; return func() { ended++ } }
		r, err := Against(t.Context(), target, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests != 400 || r.Admitted != 200 || r.Denied != 100 || r.Errors != 100 || r.Error != late.Error() {
			t.Errorf("%+v", r)
		}
		if r.Seconds < 0.0999 || r.Seconds > 0.1001 || r.Rate < 2990 || r.Rate > 3010 { // 40 calls by 4 callers, 10 ms each
			t.Errorf("%v s, %v answered a second", r.Seconds, r.Rate)
		}
		if r.P50 < 9990 || r.Max > 10_010 || began != 1 || ended != 1 {
			t.Errorf("p50 %d, max %d µs; window began %d times, ended %d", r.P50, r.Max, began, ended)
		}
	})
}

// TestOpenLoopCountsFromWhenACallWasDue: one caller at twice its pace falls behind, and
// each call waits longer than the one before it.
func TestOpenLoopCountsFromWhenACallWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := answerer{10 * time.Millisecond, []Answer{{Admitted: true}}}
		r, err := Against(t.Context(), target, Config{Requests: 100, Concurrency: 1, Batch: 1, Keys: 1, Rate: 200, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if r.Requests != 100 || r.Max < 500_000 || r.Max > 510_000 || r.P50 < 250_000 || r.P50 > 265_000 {
			t.Errorf("%d calls, p50 %d, max %d µs; want half and all of 505 ms", r.Requests, r.P50, r.Max)
		}
	})
}

// TestCallsDueEveryFewMicrosecondsKeepTheirRate waits for the kernel's ticker, in real time:
// no call begins before it is due, and none is left out.
func TestCallsDueEveryFewMicrosecondsKeepTheirRate(t *testing.T) {
	asked := 0
	began := time.Now()
	r, err := Against(t.Context(), counter{&asked}, Config{Requests: 2001, Concurrency: 1, Batch: 1, Keys: 1, Rate: 20_000, Timeout: time.Second})
	if took := time.Since(began); err != nil || asked != 2001 || took < 100*time.Millisecond {
		t.Errorf("%d calls in %v, the last due after 100 ms: %+v, %v", asked, took, r, err)
	}
}

func TestLoadEndsAtItsDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := answerer{10 * time.Millisecond, []Answer{{}}}
		r, err := Against(t.Context(), target, Config{Duration: 95 * time.Millisecond, Concurrency: 3, Batch: 1, Keys: 1, Timeout: time.Second})
		if err != nil || r.Requests != 30 || r.Denied != 30 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// counter counts the positions that it was asked for.
type counter struct{ asked *int }

func (c counter) Caller() Caller { return c }

func (c counter) Ask(_ context.Context, from, to int64, answers []Answer) []Answer {
	*c.asked += int(to - from)
	return answers
}

// TestSpreadGivesEachTargetItsShare also has more callers than histograms.
func TestSpreadGivesEachTargetItsShare(t *testing.T) {
	for _, callers := range []int{3, 300} {
		asked := make([]int, 3)
		target := Spread(counter{&asked[0]}, counter{&asked[1]}, counter{&asked[2]})
		for range callers {
			target.Caller().Ask(t.Context(), 0, 1, nil)
		}
		if asked[0] != callers/3 || asked[1] != callers/3 || asked[2] != callers/3 {
			t.Errorf("%d callers asked %v", callers, asked)
		}
	}
}

func TestManyCallersShareHistograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := answerer{10 * time.Millisecond, []Answer{{Admitted: true}}}
		r, err := Against(t.Context(), target, Config{Requests: 1000, Concurrency: 1000, Batch: 1, Keys: 1, Timeout: time.Second})
		if err != nil || r.Requests != 1000 || r.P50 < 9990 || r.Max > 10_010 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

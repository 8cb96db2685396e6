package report

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// BinWidth is the time that one bin of the figures covers.
const BinWidth = 100 * time.Millisecond

// Bin is what callers met in one BinWidth: requests by the time of their answer, and
// what the answered ones waited.
type Bin struct {
	Answered int           `json:"answered"`
	Failed   int           `json:"failed"`
	P50      time.Duration `json:"p50_ns"`
	P99      time.Duration `json:"p99_ns"`
	Max      time.Duration `json:"max_ns"`
}

// Figures are of a whole act. Only probes wait as long as it takes, so only they tell
// what an application would have waited.
type Figures struct {
	Requests     int                      `json:"requests"`
	Answered     int                      `json:"answered"`
	ByPlan       map[string]int           `json:"answered_by_plan"`
	Probes       int                      `json:"probes"`
	WithinSecond float64                  `json:"probes_within_1s"` // share
	P50          time.Duration            `json:"probe_p50_ns"`
	P99          time.Duration            `json:"probe_p99_ns"`
	LongestWait  time.Duration            `json:"probe_longest_wait_ns"` // the worst gap a client saw
	WorstGap     map[uint32]time.Duration `json:"worst_gap_ns"`          // between two answers to a probe, by the group that had its bucket at first
}

func bins(requests []Request, lasted time.Duration) []Bin {
	waits := make([][]time.Duration, int(lasted/BinWidth)+1)
	out := make([]Bin, len(waits))
	for _, r := range requests {
		i := min(int(r.Return/BinWidth), len(out)-1)
		if !r.Answered {
			out[i].Failed++
			continue
		}
		waits[i] = append(waits[i], r.Return-r.Call)
	}
	for i, w := range waits {
		slices.Sort(w)
		out[i].Answered, out[i].P50, out[i].P99, out[i].Max = len(w), quantile(w, 0.5), quantile(w, 0.99), quantile(w, 1)
	}
	return out
}

func figures(requests []Request) Figures {
	f := Figures{Requests: len(requests), ByPlan: map[string]int{}, WorstGap: map[uint32]time.Duration{}}
	var waits []time.Duration
	within := 0
	answers := map[int][]time.Duration{}
	home := map[int]uint32{} // of a probe: its bucket may move
	for _, r := range requests {
		if r.Answered {
			f.Answered++
			f.ByPlan[r.Plan]++
		}
		if !r.Probe {
			continue
		}
		f.Probes++
		waits = append(waits, r.Return-r.Call)
		if r.Answered {
			if _, ok := home[r.Caller]; !ok {
				home[r.Caller] = r.Group
			}
			answers[r.Caller] = append(answers[r.Caller], r.Return)
			if r.Return-r.Call <= time.Second {
				within++
			}
		}
	}
	slices.Sort(waits)
	f.P50, f.P99, f.LongestWait = quantile(waits, 0.5), quantile(waits, 0.99), quantile(waits, 1)
	if f.Probes > 0 {
		f.WithinSecond = float64(within) / float64(f.Probes)
	}
	for caller, at := range answers {
		group := home[caller]
		slices.Sort(at)
		for i := 1; i < len(at); i++ {
			f.WorstGap[group] = max(f.WorstGap[group], at[i]-at[i-1])
		}
	}
	return f
}

// quantile returns the q-quantile (0 … 1) of sorted durations, 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// leaderChanges are the answers by which callers saw new terms.
func leaderChanges(requests []Request) (changes []LeaderChange) {
	ordered := slices.SortedFunc(slices.Values(requests), func(a, b Request) int { return cmp.Compare(a.Return, b.Return) })
	terms := map[uint32]uint64{}
	for _, r := range ordered {
		was := terms[r.Group]
		if r.Term <= was {
			continue
		}
		if terms[r.Group] = r.Term; was > 0 {
			changes = append(changes, LeaderChange{r.Return, r.Group, r.Term})
		}
	}
	return changes
}

// Total adds what was done over all acts.
func (r *Report) Total() map[string]int {
	total := map[string]int{}
	for _, a := range r.Acts {
		for what, n := range a.Counts {
			total[what] += n
		}
	}
	return total
}

// sorted are the names of counts, in order.
func sorted(counts map[string]int) []string { return slices.Sorted(maps.Keys(counts)) }

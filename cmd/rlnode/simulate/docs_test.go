package simulate_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/cmd/rlnode/simulate"
	"github.com/ringlimit/ringlimit/decision"
)

// setup is one policy file of docs/policies.md and the table behind it.
type setup struct {
	title, file string
	rows        []string
}

// readSetups takes the page apart.
func readSetups(t *testing.T) (all []setup) {
	page, err := os.ReadFile("../../../docs/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(string(page), "\n## ") {
		before, rest, ok := strings.Cut(section, "```yaml\n")
		if !ok {
			continue
		}
		file, rest, _ := strings.Cut(rest, "```\n")
		s := setup{title: strings.SplitN(before, "\n", 2)[0], file: file}
		for line := range strings.Lines(rest) {
			if cells := strings.Split(line, " | "); len(cells) == 4 && strings.Contains(line, "`{") {
				s.rows = append(s.rows, strings.Trim(strings.TrimSpace(line), "|"))
			}
		}
		all = append(all, s)
	}
	return all
}

// TestDocumentedSetUpsHold loads every policy file of docs/policies.md and plays
// every table.
func TestDocumentedSetUpsHold(t *testing.T) {
	setups := readSetups(t)
	if len(setups) != 5 {
		t.Fatalf("%d set-ups, want 5", len(setups))
	}
	for _, s := range setups {
		t.Run(s.title, func(t *testing.T) {
			if len(s.rows) < 5 {
				t.Fatalf("%d rows", len(s.rows))
			}
			set := parse(t, s.file)
			var trace strings.Builder
			var want, rows []string
			for _, row := range s.rows {
				cells := strings.Split(row, " | ")
				times, err := strconv.Atoi(strings.TrimSpace(cells[1]))
				if err != nil {
					t.Fatal(err)
				}
				for range times {
					fmt.Fprintf(&trace, `{"t":"%s",%s`+"\n", strings.TrimSpace(cells[0]), strings.Trim(cells[2], "` ")[1:])
					want = append(want, strings.TrimSpace(cells[3]))
					rows = append(rows, row)
				}
			}
			n := 0
			play(t, set, trace.String(), func(_ *simulate.Event, o *simulate.Outcome) {
				if got := inWords(o); got != want[n] && !strings.HasPrefix(got, want[n]+",") {
					t.Errorf("%s\n     is: %s", rows[n], got)
				}
				n++
			})
		})
	}
}

// inWords is an answer as the page writes it, which may leave out the end.
func inWords(o *simulate.Outcome) string {
	if o.Head < 0 {
		if o.Allowed {
			return "allowed, no policy"
		}
		return "denied, no policy"
	}
	l := o.Limits[o.Head]
	switch {
	case !o.Allowed && l.RetryAfter < 0:
		return "denied by " + l.PolicyID + ", never"
	case !o.Allowed:
		return fmt.Sprintf("denied by %s, again in %s", l.PolicyID, time.Duration(l.RetryAfter))
	}
	text := fmt.Sprintf("allowed, %d left", l.Remaining)
	if d := decision.Delay(o.Limits); d > 0 {
		text += fmt.Sprintf(", hold it for %s", time.Duration(d))
	}
	return text
}

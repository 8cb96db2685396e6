// Command envoyconform runs envoyproxy/ratelimit and the Envoy service of ringlimit
// side by side in one process, on generated configurations and requests, at the same
// virtual time: the configuration as the reference reads it there, imported as
// `rlnode policy import envoy` does here.
//
// Each answer must be that of the reference, or differ in documented ways alone. That
// is judged by a model which knows the reference's rules and, one by one, our
// differences: without any of them it must predict the reference, with all of them
// ours, each answer of each case.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"
)

func main() {
	cases := flag.Int("cases", 10_000, "how many `cases`, each a configuration and the requests to it")
	from := flag.Uint64("from", 1, "the first `seed`")
	flag.Parse()
	logrus.SetLevel(logrus.FatalLevel)
	s, err := run(*from, *cases)
	if err != nil {
		fmt.Fprintln(os.Stderr, "envoyconform:", err)
		os.Exit(1)
	}
	s.print(os.Stdout)
	if len(s.faults) > 0 {
		os.Exit(1)
	}
}

// summary is what came out of a run.
type summary struct {
	cases, equal, refused int
	total                 outcome
	why                   [differences]int // cases that need each difference
	faults                []string         // answers that nothing explains, one for each case with any
}

// run plays cases, from a seed on, until enough were loaded by the reference.
func run(from uint64, cases int) (*summary, error) {
	r, err := newReference()
	if err != nil {
		return nil, err
	}
	defer r.close()
	s := new(summary)
	for seed := from; s.cases < cases; seed++ {
		c := generate(seed)
		o, err := play(c, r)
		switch {
		case err != nil:
			return nil, err
		case o.refused:
			s.refused++
			continue
		}
		s.cases++
		s.total.answers, s.total.alike, s.total.codes = s.total.answers+o.answers, s.total.alike+o.alike, s.total.codes+o.codes
		if o.equal {
			s.equal++
		}
		for d := range differences {
			if o.why.has(d) {
				s.why[d]++
			}
		}
		if o.fault != "" {
			s.faults = append(s.faults, fmt.Sprintf("seed %d, %s: %s", seed, c.algorithm, o.fault))
		}
	}
	return s, nil
}

func (s *summary) print(w io.Writer) {
	for _, f := range s.faults {
		fmt.Fprintln(w, f)
	}
	fmt.Fprintf(w, "%d cases: %d equal in every field of every answer, %d with documented differences alone, %d not explained\n",
		s.cases, s.equal, s.cases-s.equal-len(s.faults), len(s.faults))
	fmt.Fprintf(w, "%d answers: %d equal in every field, %d in all codes; %d configurations were refused by the reference\n",
		s.total.answers, s.total.alike, s.total.codes, s.refused)
	for d, n := range s.why {
		fmt.Fprintf(w, "%6d cases: %s\n", n, toldDifferences[d])
	}
}

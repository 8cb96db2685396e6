// Command mutants shows that the checkers can see: it builds the product with one bug
// at a time, each a careless change that somebody could have made, and demands that a
// checker finds it, while the clean build, run the same way, is found nothing wrong
// with.
//
//	go run ./bench/mutants                  # the bugs that every merge must see
//	go run ./bench/mutants -all             # and those of moves, epochs and leases
//	go run ./bench/mutants -words evict-not-full
//
// A bug is a patch in patches/, applied by the overlay of the go command: the
// product's own code has no trace of it. The table (table.go) says how each is brought
// to light: by seeds of bench/sim with a load and faults that matter to it, or by a
// test of an invariant where no answer to a caller can show it. A panic, or a run
// without a verdict, does not count as seen.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	all := flag.Bool("all", false, "also the bugs beyond those of every merge")
	jobs := flag.Int("jobs", 2, "how many run at a time, on one processor each")
	limit := flag.Duration("limit", 4*time.Minute, "how long one bug may take, its build included; one run, a quarter of that")
	keep := flag.String("keep", "", "a directory for what is built and for traces, which stays")
	words := flag.Bool("words", false, "also print the first finding of each")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	chosen, err := choose(*all, flag.Args())
	if err == nil {
		err = run(ctx, chosen, *keep, *jobs, *limit, *words)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// choose picks mutants by their names.
func choose(all bool, names []string) (list []*mutant, err error) {
	for i := range mutants {
		if m := &mutants[i]; slices.Contains(names, m.name) || len(names) == 0 && (all || i < required) {
			list = append(list, m)
		}
	}
	if len(names) > 0 && len(list) != len(names) {
		return nil, fmt.Errorf("%v: not all of these are known", names)
	}
	return list, nil
}

// runner runs builds, some at a time.
type runner struct {
	module
	limit time.Duration
	jobs  chan struct{} // one token for each that runs
}

// each calls f for all, some at a time, and waits.
func each[T any](r *runner, list []T, f func(T)) {
	var wg sync.WaitGroup
	for _, x := range list {
		r.jobs <- struct{}{}
		wg.Go(func() {
			defer func() { <-r.jobs }()
			f(x)
		})
	}
	wg.Wait()
}

// run chases the mutants, then runs the clean build the same way.
func run(ctx context.Context, list []*mutant, keep string, jobs int, limit time.Duration, words bool) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	root, err := find(cwd)
	if err != nil {
		return err
	}
	dir, err := workshop(keep)
	if err != nil {
		return err
	}
	if keep == "" {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	r := &runner{module: module{root: root, dir: dir}, limit: limit, jobs: make(chan struct{}, max(1, jobs))}
	begun := time.Now()
	var mu sync.Mutex // guards all, and the order of lines
	var all []seen
	each(r, list, func(m *mutant) {
		s := r.chase(ctx, m)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		s.print(words)
	})
	missed := slices.DeleteFunc(slices.Clone(all), func(s seen) bool { return s.err == nil })
	accused, err := r.clean(ctx, all)
	fmt.Printf("%d of %d bugs seen, in %v\n", len(all)-len(missed), len(all), time.Since(begun).Round(time.Second))
	switch {
	case err != nil:
		return err
	case len(missed) > 0 || len(accused) > 0:
		return fmt.Errorf("%d bugs not seen; %d runs of the clean build in which something was found\n%s", len(missed), len(accused), strings.Join(accused, "\n"))
	}
	return nil
}

// print prints what became of one mutant, as a line of the table.
func (s *seen) print(words bool) {
	by, where := strings.Join(s.by, ", "), s.where
	if s.err != nil {
		by, where = "NOT SEEN", ""
	}
	fmt.Printf("%-20s  %-28s  %-9s  %2d runs  %4.0f s (build %.0f s)\n", s.m.name, by, where, max(1, len(s.tried)), s.took.Seconds(), s.built.Seconds())
	if s.err != nil {
		fmt.Println("\t" + strings.ReplaceAll(s.err.Error(), "\n", "\n\t"))
	} else if words {
		fmt.Println("\t" + s.words)
	}
}

// workshop is the directory for what is built: the one that is to stay, or a new one.
func workshop(keep string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "ringlimit-mutants-*")
	}
	return filepath.Abs(keep)
}

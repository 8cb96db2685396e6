package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// clean builds the product without a bug and runs it with every seed, scene and test
// that mutants were run with. It returns the runs in which something was found.
func (r *runner) clean(ctx context.Context, all []seen) (accused []string, err error) {
	byBuild := make(map[string][]*seen) // those that need one build
	for i := range all {
		m := all[i].m
		pkg := m.test.pkg
		if pkg == "" {
			pkg = "bench/sim"
		}
		name := strings.Join(append([]string{pkg}, m.sim.with...), " ")
		byBuild[name] = append(byBuild[name], &all[i])
	}
	for _, name := range slices.Sorted(maps.Keys(byBuild)) {
		found, err := r.cleanBuild(ctx, name, byBuild[name])
		if err != nil {
			return nil, err
		}
		accused = append(accused, found...)
	}
	return accused, nil
}

// once is one run of the clean build.
type once struct {
	m    *mutant
	seed uint64 // 0: its test
}

func (r *runner) cleanBuild(ctx context.Context, name string, list []*seen) (accused []string, err error) {
	words := strings.Fields(name)
	with, err := conditions(words[1:])
	if err != nil {
		return nil, err
	}
	binary, err := r.build(ctx, "clean", words[0], with...)
	if err != nil {
		return nil, err
	}
	runs := make(map[string]once) // scenes may be shared
	for _, s := range list {
		if s.m.test.pkg != "" {
			runs[s.m.test.run] = once{m: s.m}
		}
		for _, seed := range s.tried {
			runs[fmt.Sprint(&s.m.sim, seed)] = once{s.m, seed}
		}
	}
	var mu sync.Mutex // guards accused and err
	each(r, slices.Collect(maps.Values(runs)), func(x once) {
		words, e := r.innocent(ctx, binary, x)
		mu.Lock()
		defer mu.Unlock()
		if e != nil {
			err = e
		}
		if words != "" {
			accused = append(accused, words)
		}
	})
	return accused, err
}

// innocent runs the clean build once, and says what was found.
func (r *runner) innocent(ctx context.Context, binary string, x once) (words string, err error) {
	if x.seed == 0 {
		out, err := r.execute(ctx, binary, x.m.test.pkg, "-test.run", "^"+x.m.test.run+"$")
		words, bad := tested(out, x.m.test.run)
		switch {
		case bad != nil:
			return "", bad
		case err != nil:
			return x.m.test.run + ": " + words, nil
		}
		return "", nil
	}
	v, err := r.seed(ctx, binary, &x.m.sim, x.seed)
	switch {
	case err != nil:
		return "", err
	case v.late:
		return "", fmt.Errorf("the clean build does not end within %v: %v, seed %d", r.longest(), &x.m.sim, x.seed)
	case len(v.found) == 0:
		return "", nil
	}
	return fmt.Sprintf("%v, seed %d: %s", &x.m.sim, x.seed, v.words), nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

// longest is how long one run may take, of the limit of a bug: a bug may keep a simulated
// cluster from ever coming to rest, which is no verdict of a checker.
func (r *runner) longest() time.Duration { return r.limit / 4 }

// verdict is what became of one run of one build.
type verdict struct {
	late  bool     // it took too long
	found []string // checkers that found something
	void  bool
	words string // the first finding, for people
}

// seen is what became of one mutant.
type seen struct {
	m     *mutant
	by    []string // checkers that saw it, of those that count
	also  []string // and others
	where string   // seed or test
	words string
	built time.Duration
	took  time.Duration // all in all
	tried []uint64      // seeds, the last one showed it
	err   error         // it could not be tried, or was not seen
}

// chase builds one mutant and runs it until it is seen or the time is up.
func (r *runner) chase(ctx context.Context, m *mutant) (s seen) {
	s.m = m
	begun := time.Now()
	defer func() { s.took = time.Since(begun) }()
	p, err := readPatch(m.name)
	if err != nil {
		s.err = err
		return s
	}
	pkg := "bench/sim"
	if m.test.pkg != "" {
		pkg = m.test.pkg
	}
	with, err := conditions(m.sim.with)
	if err != nil {
		s.err = err
		return s
	}
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	binary, err := r.build(ctx, m.name, pkg, append(with, p)...)
	s.built = time.Since(begun)
	if err != nil {
		s.err = err
		return s
	}
	if m.test.pkg != "" {
		s.byTest(ctx, r, binary)
		return s
	}
	s.bySeeds(ctx, r, binary)
	return s
}

// byTest runs the test that has to fail.
func (s *seen) byTest(ctx context.Context, r *runner, binary string) {
	out, err := r.execute(ctx, binary, s.m.test.pkg, "-test.run", "^"+s.m.test.run+"$")
	s.where = "its test"
	switch v, bad := tested(out, s.m.test.run); {
	case bad != nil:
		s.err = bad
	case err == nil:
		s.err = errors.New("its test passes")
	default:
		s.by, s.words = []string{s.m.test.run}, v
	}
}

// bySeeds runs seed after seed.
func (s *seen) bySeeds(ctx context.Context, r *runner, binary string) {
	for seed := range s.m.seeds() {
		v, err := r.seed(ctx, binary, &s.m.sim, seed)
		if ctx.Err() != nil {
			s.err = fmt.Errorf("not seen within %v, by seeds %v; others found %v", r.limit, s.tried, s.also)
			return
		}
		if err != nil {
			s.err = err
			return
		}
		if v.late {
			s.also = append(s.also, fmt.Sprintf("no end of seed %d", seed))
			continue
		}
		s.tried = append(s.tried, seed)
		for _, name := range v.found {
			if slices.Contains(s.m.sees, name) {
				s.by = append(s.by, name)
			} else if !slices.Contains(s.also, name) {
				s.also = append(s.also, name)
			}
		}
		if len(s.by) > 0 {
			s.where, s.words = fmt.Sprint("seed ", seed), v.words
			return
		}
	}
}

// seeds are those that showed the bug before, then all.
func (m *mutant) seeds() func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for _, n := range m.first {
			if !yield(n) {
				return
			}
		}
		for n := uint64(1); ; n++ {
			if !slices.Contains(m.first, n) && !yield(n) {
				return
			}
		}
	}
}

// seed runs one seed of a scene.
func (r *runner) seed(ctx context.Context, binary string, s *scene, seed uint64) (verdict, error) {
	args := append([]string{"-test.run", "^TestNarrow$", "-test.timeout", "5m", "-traces", r.dir, "-seed", strconv.FormatUint(seed, 10)}, s.args()...)
	run, cancel := context.WithTimeout(ctx, r.longest())
	defer cancel()
	out, _ := r.execute(run, binary, "bench/sim", args...)
	if run.Err() != nil {
		return verdict{late: true}, ctx.Err()
	}
	return judged(out)
}

// execute runs a test binary on one processor, in the directory of its package.
func (r *runner) execute(ctx context.Context, binary, pkg string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Dir = filepath.Join(r.root, filepath.FromSlash(pkg))
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return out.String(), err
}

var line = regexp.MustCompile(`(?m)^seed \d+: (FOUND by ([^:]*): (.*)|HELD: .*|VOID: .*)$`)

// judged reads what TestNarrow printed. A run that ends without a verdict, by a panic
// for example, is an error: no checker has seen anything then.
func judged(out string) (verdict, error) {
	m := line.FindStringSubmatch(out)
	switch {
	case m == nil:
		return verdict{}, fmt.Errorf("a run ended without a verdict:\n%s", tail(out))
	case strings.HasPrefix(m[1], "VOID"):
		return verdict{void: true}, nil
	case m[2] == "":
		return verdict{}, nil
	}
	return verdict{found: strings.Split(m[2], ", "), words: m[3]}, nil
}

// tested reads what a test printed: the first words of its failure. A panic, or
// another test that fails, is an error.
func tested(out, name string) (words string, err error) {
	if strings.Contains(out, "panic: ") || strings.Contains(out, "no tests to run") {
		return "", fmt.Errorf("%s did not judge:\n%s", name, tail(out))
	}
	_, after, found := strings.Cut(out, "--- FAIL: "+name+" ")
	if !found {
		return "", nil
	}
	lines := strings.SplitN(after, "\n", 3)
	if len(lines) < 2 {
		return "", nil
	}
	return strings.TrimSpace(lines[1]), nil
}

func tail(out string) string { return out[max(0, len(out)-3000):] }

// conditions are the patches that a scene needs.
func conditions(names []string) (list []patch, err error) {
	for _, name := range names {
		p, err := readPatch(name)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

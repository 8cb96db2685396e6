package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// module is the root of the repository.
type module struct {
	root string
	dir  string // for what is built
}

// overlay writes the files that patches change into a directory of their own, and a
// file that tells the go command to take them instead. The product is not touched.
func (m module) overlay(name string, list ...patch) (path string, err error) {
	files, err := apply(os.DirFS(m.root), list...)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for file, text := range files {
		to := filepath.Join(m.dir, name, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(m.root, filepath.FromSlash(file))] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(m.dir, name+".json")
	return path, os.WriteFile(path, b, 0o600)
}

// build makes the test binary of a package with patches applied, and returns its path.
func (m module) build(ctx context.Context, name, pkg string, list ...patch) (string, error) {
	overlay, err := m.overlay(name, list...)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(m.dir, name+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-p", "1", "-ldflags", "-s -w", "-overlay", overlay, "-o", binary, "./"+pkg)
	cmd.Dir = m.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return binary, nil
}

// find looks upwards for the root of the repository.
func find(from string) (string, error) {
	for dir := from; ; dir = filepath.Dir(dir) {
		if _, err := fs.Stat(os.DirFS(dir), "bench/mutants/patch.go"); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in the repository", from)
		}
	}
}

package certs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
)

// maxKeys bounds a file of gossip keys: each is tried on each packet of a stranger.
const maxKeys = 8

// Keys are the keys of gossip, from a file of one key in base64 a line; empty lines and
// those that begin with # do not count. The first encrypts, each decrypts.
type Keys struct {
	files   *watched
	cur     atomic.Pointer[[][]byte]
	Changed func(keys [][]byte) error // told of new keys by the goroutine of Run; set before it. An error: they are not in use
}

// OpenKeys reads the file.
func OpenKeys(path string, log *slog.Logger) (*Keys, error) {
	k := &Keys{}
	k.files = &watched{
		what: "keys of gossip", paths: []string{path}, log: cmp.Or(log, slog.Default()),
		take: func(contents [][]byte) error { return k.take(path, contents[0]) },
		tell: func() []any { return []any{"keys", len(k.List())} },
	}
	if err := k.files.open(); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *Keys) take(path string, data []byte) error {
	keys, err := parseKeys(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if k.Changed != nil {
		if err := k.Changed(keys); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	k.cur.Store(&keys)
	return nil
}

// List returns the keys in use, the one that encrypts first. Nobody changes them.
func (k *Keys) List() [][]byte { return *k.cur.Load() }

// Refused returns how often a changed file was not taken over, since OpenKeys.
func (k *Keys) Refused() int64 { return k.files.refused.Load() }

// Run reads the file again when it changes, until ctx ends. It returns ctx's error.
func (k *Keys) Run(ctx context.Context) error { return k.files.run(ctx) }

// parseKeys reads the lines of such a file. Errors name the line, and never what it holds.
func parseKeys(data []byte) ([][]byte, error) {
	var keys [][]byte
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || !slices.Contains([]int{16, 24, 32}, len(key)) {
			return nil, fmt.Errorf("line %d: want 16, 24 or 32 bytes in base64, as from openssl rand -base64 32", n)
		}
		if slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) }) {
			return nil, fmt.Errorf("line %d: the key stands there twice", n)
		}
		keys = append(keys, key)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("holds %d keys: want 1 to %d, one a line", len(keys), maxKeys)
	}
	return keys, nil
}

// NewKey returns a random key of 32 bytes as such a file has it.
func NewKey() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.StdEncoding.EncodeToString(b[:])
}

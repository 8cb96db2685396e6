package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The policy cache is a file from which a client starts that reaches no node. It is
// JSON, replaced as a whole: who reads it finds an old one or a new one.
type cacheFile struct {
	Format   int             `json:"format"`  // cacheFormat
	Cluster  string          `json:"cluster"` // id of the cluster it comes from; "": not known
	Version  uint64          `json:"version"` // of the policies
	Digest   uint64          `json:"digest"`  // of the policies, as the nodes have it; 0: not known
	Clients  int             `json:"clients"` // that shared the limits when it was written, 0 … 1,000,000; 0: not known
	Policies json.RawMessage `json:"policies"`
}

const (
	cacheFormat = 1
	maxClients  = 1_000_000
	maxCache    = maxPolicyBytes + 1<<10 // bytes of the file
	saveEvery   = 30 * time.Second       // where nothing but the number of clients has changed
)

// readCache returns what a policy cache holds. fs.ErrNotExist: there is none yet.
// Any other error says what is wrong with it; nothing of such a file is used.
func readCache(path string) (kept, error) {
	f, err := os.Open(path)
	if err != nil {
		return kept{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxCache+1))
	if err != nil {
		return kept{}, err
	}
	k, err := parseCache(data)
	if err != nil {
		return kept{}, fmt.Errorf("%s: %w", path, err)
	}
	return k, nil
}

func parseCache(data []byte) (kept, error) {
	if len(data) > maxCache {
		return kept{}, fmt.Errorf("more than %d bytes", maxCache)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var c cacheFile
	if err := d.Decode(&c); err != nil {
		return kept{}, fmt.Errorf("not a policy cache: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return kept{}, fmt.Errorf("not a policy cache: something follows the object")
	}
	switch {
	case c.Format != cacheFormat:
		return kept{}, fmt.Errorf("format: %d, want %d", c.Format, cacheFormat)
	case c.Clients < 0 || c.Clients > maxClients:
		return kept{}, fmt.Errorf("clients: %d, want 0 … %d", c.Clients, maxClients)
	}
	return kept{
		cluster: c.Cluster, version: c.Version, digest: c.Digest, policies: c.Policies,
		share: anyRank(c.Clients),
	}, nil
}

// loadCache starts from the policy cache, if there is a good one. Called by New alone.
func (c *Client) loadCache() error {
	path := c.options.cache
	if path == "" {
		return nil
	}
	k, err := readCache(path)
	if err == nil {
		if k.share.Clients == 0 {
			k.share = c.kept.share
		}
		if err = c.keep(k); err != nil {
			err = fmt.Errorf("%s: policies: %w", path, err)
		}
	}
	switch {
	case err == nil:
		c.saved = c.kept
		return nil
	case c.options.cacheRequired:
		return fmt.Errorf("policy cache: %w", err)
	case !errors.Is(err, fs.ErrNotExist):
		c.options.logger.Warn("ringlimit: the policy cache is not used; without the cluster, calls fail until its policies are known", "error", err)
	}
	return nil
}

// saveCache writes what has changed; with last at once, even if it is little. Called
// by prepare alone.
func (c *Client) saveCache(last bool) {
	path := c.options.cache
	changed := c.kept.digest != c.saved.digest || c.kept.cluster != c.saved.cluster
	counted := c.kept.share.Clients != c.saved.share.Clients && (last || time.Since(c.savedAt) >= saveEvery)
	if path == "" || c.kept.policies == nil || !changed && !counted || !last && time.Since(c.saveFailed) < saveEvery {
		return
	}
	if err := writeCache(path, c.kept); err != nil {
		c.saveFailed = time.Now()
		c.options.logger.Warn("ringlimit: the policy cache is not written", "error", err)
		return
	}
	c.saved, c.savedAt = c.kept, time.Now()
}

// writeCache replaces the file. The new one is on disk before it takes the name.
func writeCache(path string, k kept) error {
	data, err := json.Marshal(cacheFile{
		Format: cacheFormat, Cluster: k.cluster, Version: k.version, Digest: k.digest,
		Clients: k.share.Clients, Policies: k.policies,
	})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	syncDir(filepath.Dir(path))
	return nil
}

// syncDir makes a rename last, where directories can be synced: elsewhere a crash of the
// machine may bring the old file back, which is as good as the new one a moment before.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

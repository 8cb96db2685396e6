package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/internal/datadir"
	"github.com/ringlimit/ringlimit/internal/slotfile"
)

// backup makes a backup of the cluster, asked of one of its nodes.
func (s *sim) backup(path string) BackupInfo {
	s.t.Helper()
	b, err := CreateBackup(path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer b.Abort()
	if err := s.any().Backup(s.t.Context(), func(p []byte) error { _, err := b.Write(p); return err }); err != nil {
		s.t.Fatal(err)
	}
	info, err := b.Commit()
	if err != nil {
		s.t.Fatal(err)
	}
	return info
}

func TestBackupIsRestoredIntoAnotherCluster(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.tune = func(c *Config) { c.Slots = 64 }
		s.boot()
		tenants := []string{"t0", "t1", "t2", "t3", "t4"}
		for i, tenant := range tenants {
			s.spend(tenant, "year", 3+i)
		}
		withID := request("t0", "year")
		withID.RequestId = "order-1"
		first := s.any().take(t.Context(), withID).GetDecision()
		found, _ := s.any().control.State().Policies.Find("hundred")
		changed := *found
		changed.Limit.Burst = 50
		body, err := json.Marshal(&changed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.any().Policies().Put(t.Context(), &pb.PutPolicyRequest{PolicyJson: body}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // all nodes decide by it now
		s.spend("t1", "hundred", 5)
		path := filepath.Join(t.TempDir(), "b")
		info := s.backup(path)
		if info.Slots != 64 || info.Policies != 3 || info.Buckets < 6 {
			t.Errorf("%+v", info)
		}
		old := s.any().control.State()
		s.spend("t0", "year", 3) // in no backup
		for _, name := range s.names {
			s.stop(name)
		}
		time.Sleep(time.Hour)

		to := newSim(t, 2)
		to.names = []string{"x", "y"}
		to.keepDirectories()
		to.set = nil
		to.tune = func(c *Config) { c.Restore = path }
		defer to.close()
		to.boot()
		now := to.any().control.State()
		if now.ClusterID == old.ClusterID || now.PolicyVersion != old.PolicyVersion || len(now.Audit) != len(old.Audit) || !bytes.Equal(now.Secret, old.Secret) || now.Slots != 64 {
			t.Errorf("cluster %s, policies of version %d, %d lines of audit", now.ClusterID, now.PolicyVersion, len(now.Audit))
		}
		to.epochsAre(2)
		if now.Restoring() != 0 || now.Groups[0].Restoring != nil {
			t.Errorf("%d slots wait", now.Restoring())
		}
		again := to.any().take(t.Context(), withID).GetDecision()
		if first == nil || again == nil || !again.Allowed || again.Remaining != first.Remaining {
			t.Errorf("a request with an id: %v, and again %v", first, again)
		}
		for i, tenant := range tenants {
			want := 7 - i
			if i == 0 {
				want-- // the one with an id
			}
			if got := to.spend(tenant, "year", 12); got != want {
				t.Errorf("%s: %d admitted after the restore, want %d", tenant, got, want)
			}
		}
		if got := to.spend("t1", "hundred", 60); got != 45 {
			t.Errorf("%d admitted by a policy of version 2, want 45", got)
		}
		if got := to.spend("never seen", "year", 12); got != 10 {
			t.Errorf("%d admitted of a tenant that had spent nothing, want 10", got)
		}
		for _, name := range to.names { // with the same flags, it is a node like any other
			to.stop(name)
			to.start(name)
			to.healthy(time.Minute)
		}
	})
}

func TestRestoreWaitsForTheFileAndNeverBeginsWithout(t *testing.T) {
	bubble(t, 1, func(t *testing.T, s *sim) {
		s.tune = func(c *Config) { c.Slots = 16 }
		s.boot()
		s.spend("t", "year", 4)
		path := filepath.Join(t.TempDir(), "b")
		s.backup(path)
		s.stop("a")

		to := newSim(t, 2)
		to.names = []string{"x", "y"}
		to.keepDirectories()
		to.tune = func(c *Config) {
			if c.Name == "x" {
				c.Restore = path
			}
		}
		defer to.close()
		x, err := Open(to.config("x"))
		if err != nil {
			t.Fatal(err)
		}
		x.backup.close() // it cannot be read any more
		to.run(x)
		to.start("y")
		to.eventually(10*time.Second, func() error {
			if !to.nodes["y"].control.State().Placed() {
				return errors.New("no placement")
			}
			return nil
		})
		time.Sleep(time.Minute)
		for _, n := range to.nodes {
			if r := n.take(t.Context(), request("t", "year")); r.GetDecision() != nil {
				t.Errorf("decided without the backup: %v", r)
			}
		}
		if r, _ := to.any().Status(t.Context(), &pb.StatusRequest{}); r.GetHealthy() || !strings.Contains(strings.Join(r.GetProblems(), " "), "--restore") {
			t.Errorf("problems are %q", r.GetProblems())
		}
		to.stop("x")
		to.start("x") // with the same file
		to.healthy(time.Minute)
		if got := to.spend("t", "year", 12); got != 6 {
			t.Errorf("%d admitted, want 6", got)
		}
	})
}

func TestRestoreIsRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, s *sim) {
		s.tune = func(c *Config) { c.Slots = 16 }
		s.boot()
		s.spend("t", "year", 4)
		path := filepath.Join(t.TempDir(), "b")
		s.backup(path)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}

		// Into a cluster that exists.
		s.tune = func(c *Config) { c.Slots, c.Restore = 16, path }
		s.names = append(s.names, "b")
		n, err := Open(s.config("b"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := n.Run(ctx); err == nil || !strings.Contains(err.Error(), "into a new cluster only") {
			t.Errorf("a node with --restore ran in another cluster: %v", err)
		}
		s.names = s.names[:1]

		// On a directory of the cluster that it was made from.
		dir, err := datadir.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		if err := dir.SetClusterID(s.any().control.State().ClusterID); err != nil {
			t.Fatal(err)
		}
		old := &Node{cfg: Config{Restore: path}, dir: dir, log: simLogger("old")}
		if err := old.openBackup(); err == nil || !strings.Contains(err.Error(), "give an empty directory") {
			t.Errorf("on the old cluster's directory: %v", err)
		}

		// Files that are none.
		bad := filepath.Join(t.TempDir(), "bad")
		for what, c := range map[string]struct {
			content []byte
			want    error
			right   string
		}{
			"a policy file": {[]byte("policies: []\n"), slotfile.ErrForeign, "want a file that rlnode backup wrote"},
			"cut off":       {whole[:len(whole)-20], slotfile.ErrTruncated, "want the whole file"},
			"empty":         {nil, slotfile.ErrForeign, "want a file that rlnode backup wrote"},
			"damaged":       {repack(t, whole), slotfile.ErrDamaged, "offsets are of the decompressed data"},
		} {
			if err := os.WriteFile(bad, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
			if f, err := openBackupFile(bad, ""); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.right) {
				t.Errorf("%s: %v, %v, want %v: %s", what, f, err, c.want, c.right)
			}
		}
	})
}

// repack flips one bit of what is in a backup.
func repack(t *testing.T, packed []byte) []byte {
	t.Helper()
	unzip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer unzip.Close()
	flat, err := unzip.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	flat[len(flat)/2] ^= 1
	zip, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer zip.Close()
	return zip.EncodeAll(flat, nil)
}

func TestBackupThatIsCutOffLeavesNoFile(t *testing.T) {
	bubble(t, 1, func(t *testing.T, s *sim) {
		s.tune = func(c *Config) { c.Slots = 16 }
		s.boot()
		var all []byte
		if err := s.any().Backup(t.Context(), func(p []byte) error { all = append(all, p...); return nil }); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "b")
		b, err := CreateBackup(path)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = b.Write(all[:len(all)-5])
		if _, err := b.Commit(); !errors.Is(err, slotfile.ErrTruncated) {
			t.Errorf("got %v", err)
		}
		if files, _ := filepath.Glob(path + "*"); len(files) > 0 {
			t.Errorf("left: %v", files)
		}
	})
}

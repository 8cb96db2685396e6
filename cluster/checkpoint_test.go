package cluster

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/policy"
)

// salvaging makes the policies of a plan ones that are salvaged.
func (s *sim) salvaging(plans ...string) {
	for _, p := range s.set.Policies {
		for _, plan := range plans {
			if p.ID == plan {
				p.OnStateLoss = policy.Salvage
			}
		}
	}
}

// spend takes n times and returns how many were admitted.
func (s *sim) spend(tenant, plan string, n int) int {
	s.t.Helper()
	admitted := 0
	for range n {
		r := s.any().take(s.t.Context(), request(tenant, plan))
		if r.GetDecision() == nil {
			s.t.Fatalf("%s: %v", tenant, r.GetError())
		}
		if r.GetDecision().GetAllowed() {
			admitted++
		}
	}
	return admitted
}

// checkpointFiles are those on all nodes.
func (s *sim) checkpointFiles() (all []string) {
	for _, dir := range s.dirs {
		files, _ := filepath.Glob(filepath.Join(dir, checkpointDir, "*"))
		all = append(all, files...)
	}
	return all
}

// killAll kills every node, and starts all again.
func (s *sim) killAll(between func()) {
	for _, name := range s.names {
		s.kill(name)
	}
	if between != nil {
		between()
	}
	for _, name := range s.names {
		s.start(name)
	}
	s.settled(time.Minute)
}

func TestKilledClusterSalvagesItsCheckpoints(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.salvaging("year")
		s.tune = func(c *Config) { c.CheckpointInterval = 5 * time.Second }
		s.boot()
		tenants := []string{"t0", "t1", "t2", "t3", "t4"}
		for i, tenant := range tenants {
			s.spend(tenant, "year", 3+i)
		}
		s.spend("t0", "hundred", 5)
		time.Sleep(11 * time.Second)
		if n := len(s.checkpointFiles()); n != 9 {
			t.Errorf("%d files, want one for each replica: %v", n, s.checkpointFiles())
		}
		s.spend("t4", "year", 1) // perhaps in no checkpoint
		s.killAll(nil)
		for i, tenant := range tenants {
			got, want := s.spend(tenant, "year", 12), 7-i
			if got != want && !(i == 4 && got == want-1) {
				t.Errorf("%s: %d admitted after the loss, want %d", tenant, got, want)
			}
		}
		if got := s.spend("never seen", "year", 12); got != 10 {
			t.Errorf("%d admitted of a tenant that had spent nothing, want 10", got)
		}
		if got := s.spend("t0", "hundred", 5); got != 0 {
			t.Errorf("%d admitted by a policy that is not to be salvaged", got)
		}
		s.epochsAre(2)
		time.Sleep(40 * time.Second)
		if n := len(s.checkpointFiles()); n != 9 {
			t.Errorf("%d files later on, want only those of the new epoch: %v", n, s.checkpointFiles())
		}
	})
}

func TestSurvivorIsSalvagedToTheLastTake(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.salvaging("year")
		s.boot()
		tenants := []string{"t0", "t1", "t2", "t3", "t4"}
		for i, tenant := range tenants {
			s.spend(tenant, "year", 3+i)
		}
		s.kill("b")
		s.kill("c")
		s.start("b")
		s.start("c")
		s.settled(time.Minute)
		for i, tenant := range tenants {
			if got, want := s.spend(tenant, "year", 12), 7-i; got != want {
				t.Errorf("%s: %d admitted after the loss, want %d", tenant, got, want)
			}
		}
		s.epochsAre(2)
	})
}

func TestTornAndForeignCheckpointsAreIgnored(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.salvaging("year")
		s.tune = func(c *Config) { c.CheckpointInterval = 5 * time.Second }
		s.boot()
		s.spend("t", "year", 4)
		time.Sleep(11 * time.Second)
		s.killAll(func() {
			for i, path := range s.checkpointFiles() {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				switch {
				case filepath.Dir(filepath.Dir(path)) == s.dirs["a"]: // stays
					continue
				case i%2 == 0:
					b = b[:len(b)/2]
				default:
					b = []byte("not a checkpoint")
				}
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
		if got := s.spend("t", "year", 12); got != 6 {
			t.Errorf("%d admitted, want the 6 that the one good checkpoint tells", got)
		}
		s.killAll(func() {
			for _, path := range s.checkpointFiles() {
				if err := os.WriteFile(path, []byte("RLSLOTS\x01\x01"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
		if got := s.spend("t", "year", 12); got != 0 {
			t.Errorf("%d admitted, want none where nothing is left", got)
		}
	})
}

func TestWithoutSalvagePoliciesNothingIsWritten(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.tune = func(c *Config) { c.CheckpointInterval = 5 * time.Second }
		s.boot()
		s.spend("t", "year", 4)
		time.Sleep(20 * time.Second)
		if files := s.checkpointFiles(); len(files) > 0 {
			t.Errorf("there are %v", files)
		}
	})
}

// epochsAre checks the epoch of every group.
func (s *sim) epochsAre(want uint32) {
	s.t.Helper()
	for _, g := range s.any().control.State().Groups {
		if g.Epoch != want {
			s.t.Errorf("group %d has epoch %d, want %d", g.ID, g.Epoch, want)
		}
	}
}

// TestSlotsThatMovedAreSalvaged: also those that no node of their new group has
// written down yet.
func TestSlotsThatMovedAreSalvaged(t *testing.T) {
	bubble(t, 3, func(t *testing.T, s *sim) {
		s.keepDirectories()
		s.salvaging("year")
		s.tune = func(c *Config) { c.Slots, c.CheckpointInterval = 64, 20*time.Second }
		s.boot()
		tenants := make([]string, 20)
		for i := range tenants {
			tenants[i] = string(rune('A' + i))
			s.spend(tenants[i], "year", 3+i%5)
		}
		time.Sleep(21 * time.Second)
		s.join("d")
		s.settled(2 * time.Minute)
		moved := 0
		for _, g := range s.any().control.State().Groups {
			if g.Owner == "d" {
				moved = s.any().control.State().CountSlots(g.ID)
			}
		}
		if moved == 0 {
			t.Fatal("no slot has moved")
		}
		for _, wait := range []time.Duration{0, 45 * time.Second} {
			time.Sleep(wait)
			s.killAll(nil)
			for i, tenant := range tenants {
				look := request(tenant, "year")
				look.Cost = new(int64)
				if got, want := s.any().take(t.Context(), look).GetDecision().GetRemaining(), uint64(7-i%5); got != want {
					t.Errorf("after %s, %s: %d left, want %d", wait, tenant, got, want)
				}
			}
		}
	})
}

package control

import (
	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/policy"
)

// restoredGap is how many revisions a restored cluster leaves out.
const restoredGap = 1 << 20

// Content is what a backup keeps of a State: all that decisions depend on, and
// nothing of nodes and placement.
type Content struct {
	Secret          []byte      `json:"secret"`
	RoutingKey      []byte      `json:"routing_key"`
	Slots           int         `json:"slots"`
	Epoch           uint32      `json:"epoch"` // the highest of any group
	Policies        *policy.Set `json:"policies"`
	PolicyVersion   uint64      `json:"policy_version"`
	NextRevision    uint64      `json:"next_revision,omitempty"`
	SettingsVersion uint64      `json:"settings_version,omitempty"`
	Past            []Past      `json:"past,omitempty"`
	Audit           []*Entry    `json:"audit,omitempty"`
}

// Content is what a backup keeps of s, which is placed.
func (s *State) Content() *Content {
	c := &Content{
		Secret: s.Secret, RoutingKey: s.RoutingKey, Slots: s.Slots, Epoch: s.FirstEpoch,
		Policies: s.Policies, PolicyVersion: s.PolicyVersion, NextRevision: s.NextRevision, SettingsVersion: s.SettingsVersion, Past: s.Past, Audit: s.Audit,
	}
	for _, g := range s.Groups {
		c.Epoch = max(c.Epoch, g.Epoch)
	}
	return c
}

// Check says what is wrong with c; a Refound of it would be refused.
func (c *Content) Check() error {
	switch {
	case len(c.Secret) != keySize || len(c.RoutingKey) != keySize:
		return fault.Field("content", "keys of %d and %d bytes, want %d", len(c.Secret), len(c.RoutingKey), keySize)
	case c.Slots < 1 || c.Slots > maxSlots:
		return fault.Field("content", "%d slots, want 1 … %d", c.Slots, maxSlots)
	case c.Policies == nil || c.Epoch < 1:
		return fault.Field("content", "policies and an epoch are missing")
	}
	s := State{Policies: c.Policies, PolicyVersion: c.PolicyVersion, Past: c.Past, Audit: c.Audit}
	if err := s.checkPolicies(); err != nil {
		return fault.Field("content", "%v", err)
	}
	return nil
}

// Refound is the first command of a cluster that is made from a backup, in place of
// Found: it goes on with the keys, policies, versions and audit of the old cluster,
// under an id of its own. The groups of the first placement then have all their
// slots as Births, which come from the backup (Group.Restoring); and their epochs
// and the revisions of their slots are greater than any of the old cluster, so that
// fencing tokens go on growing.
type Refound struct {
	ClusterID string   `json:"cluster_id"`
	Backup    string   `json:"backup"` // the id of the backup
	Groups    int      `json:"groups"` // as in Found
	Expect    int      `json:"expect"`
	Voters    int      `json:"voters"`
	Content   *Content `json:"content"`
}

func (Refound) kind() string { return "refound" }

func (c Refound) apply(s *State) (bool, error) {
	switch {
	case c.Backup == "" || len(c.Backup) > maxName:
		return false, fault.Field("backup", "%d bytes, want 1 … %d", len(c.Backup), maxName)
	case c.Content == nil:
		return false, fault.Field("content", "missing")
	}
	if err := c.Content.Check(); err != nil {
		return false, err
	}
	in := c.Content
	found := Found{
		ClusterID: c.ClusterID, Secret: in.Secret, RoutingKey: in.RoutingKey,
		Slots: in.Slots, Groups: c.Groups, Expect: c.Expect, Voters: c.Voters,
	}
	if changed, err := found.apply(s); !changed || err != nil {
		return false, err
	}
	s.Backup, s.FirstEpoch = c.Backup, in.Epoch+1
	s.Policies, s.PolicyVersion, s.SettingsVersion = in.Policies, in.PolicyVersion, in.SettingsVersion
	s.Past, s.Audit = in.Past, in.Audit
	// The old cluster may have gone on: what it gave out since is left far behind.
	s.NextRevision = max(in.NextRevision, 1) + restoredGap
	return true, nil
}

// restored makes the groups of the first placement wait for what a backup has.
func (s *State) restored() {
	if s.Backup == "" {
		return
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		g.Epoch = s.FirstEpoch
		if g.Births = s.SlotsOf(g.ID); len(g.Births) > 0 {
			g.BirthRevision, g.Restoring = s.revision(), g.Births
			g.Reason = "the cluster is restored from backup " + s.Backup
		}
	}
}

// Restoring counts the slots that have yet to come from the backup.
func (s *State) Restoring() int {
	n := 0
	for _, g := range s.Groups {
		n += len(g.Restoring)
	}
	return n
}

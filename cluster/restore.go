package cluster

import (
	"errors"
	"io/fs"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/control"
)

// A backup is restored by making a new cluster from it: its first command holds the
// keys, policies and versions of the old one, so that no decision is ever made by
// others; and the groups begin each slot with what the backup has of it, by the same
// way by which a new epoch salvages (salvage.go), but whole and without giving up.
// Any node that was started with the file hands it out.

// openBackup opens the file of Config.Restore.
func (n *Node) openBackup() error {
	if n.cfg.Restore == "" {
		return nil
	}
	dir := ""
	if n.dir != nil {
		dir = n.dir.Path()
	}
	f, err := openBackupFile(n.cfg.Restore, dir)
	if errors.Is(err, fs.ErrNotExist) && n.dir != nil && n.dir.ClusterID() != "" {
		n.log.Warn("--restore is ignored: this node has a cluster and the file is gone", "file", n.cfg.Restore)
		return nil
	}
	if err != nil {
		return errRestore("%v", err)
	}
	if n.dir != nil && n.dir.ClusterID() == f.head.Cluster {
		f.close()
		return errRestore("%s was made from cluster %s, to which the data directory %s belongs; a backup makes a new cluster: give an empty directory, or start without --restore",
			n.cfg.Restore, f.head.Cluster, dir)
	}
	n.backup = f
	n.log.Info("a new cluster will be made from a backup", "file", n.cfg.Restore, "backup", f.head.ID, "made", f.head.Made, "of cluster", f.head.Cluster)
	return nil
}

func errRestore(format string, args ...any) error {
	return fault.Field("--restore", format, args...)
}

// backupID is the backup that this node was started to restore, "" if none.
func (n *Node) backupID() string {
	if n.backup == nil {
		return ""
	}
	return n.backup.head.ID
}

// refoundation is the first command of a cluster that is restored.
func (n *Node) refoundation() control.Command {
	content, err := n.backup.content()
	if err != nil {
		panic(err) // it was checked when the file was opened
	}
	return control.Refound{
		ClusterID: randomID(), Backup: n.backup.head.ID, Groups: n.cfg.Groups,
		Expect: max(1, n.cfg.BootstrapExpect), Voters: n.cfg.ControlVoters, Content: content,
	}
}

// mayRestore refuses a node that was started to restore a backup which this cluster
// was not made from: its operator would take what this cluster has for the backup.
func (n *Node) mayRestore(r *pb.JoinRequest) error {
	s := n.control.State()
	if r.GetBackup() == "" || s.ClusterID == "" || r.GetBackup() == s.Backup {
		return nil
	}
	return fault.New(fault.Conflict, "node %s was started to restore backup %s, and cluster %s was not made from it: a backup is restored into "+
		"a new cluster only; stop its nodes, give each first node an empty --data-dir and the same --restore", r.GetName(), r.GetBackup(), s.ClusterID)
}

// checkRestored says whether this node, which knows its cluster, was started to
// restore another.
func (n *Node) checkRestored() error {
	return n.mayRestore(&pb.JoinRequest{Name: n.self.name, Backup: n.backupID()})
}

// backupOffers is the backup that a group's slots are to come from.
func (n *Node) backupOffers(s *control.State, g control.Group) []offer {
	if n.backup == nil || len(g.Restoring) == 0 || n.backup.head.ID != s.Backup {
		return nil
	}
	o := offer{Kind: fromBackup, Name: s.Backup, Group: g.ID}
	for _, slot := range g.Restoring {
		o.Slots = append(o.Slots, offeredSlot{Slot: slot})
	}
	return []offer{o}
}

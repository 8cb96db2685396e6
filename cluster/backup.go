package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/control"
	"github.com/ringlimit/ringlimit/internal/slotfile"
)

const (
	backupTries = 20                     // rounds over the slots that could not be read, each from fresh copies
	backupPause = 500 * time.Millisecond // between them
	pieceBytes  = 256 << 10
)

// sender is an io.Writer that sends pieces.
type sender func([]byte) error

func (f sender) Write(p []byte) (int, error) {
	if err := f(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Backup sends a backup file: what is agreed on policies, the keys of the cluster,
// and every slot as its group's leader has it at one moment, which holds all that
// was admitted before Backup was called. Slots are consistent each by itself. It
// fails where a slot cannot be had, and when policies change meanwhile.
func (n *Node) Backup(ctx context.Context, send func([]byte) error) error {
	s := n.control.State()
	switch {
	case !s.Placed():
		return fault.New(fault.NotReady, "node %s knows no placement yet", n.self.name)
	case s.Restoring() > 0:
		return fault.New(fault.NotReady, "the cluster is being restored itself: %d slots are to come", s.Restoring())
	}
	content := s.Content()
	body, err := json.Marshal(content)
	if err != nil {
		return fault.New(fault.Internal, "%v", err)
	}
	out := bufio.NewWriterSize(sender(send), pieceBytes)
	id := randomID()
	w, err := newSlotsWriter(out, fileHead{
		Kind: backupFile, Format: slotsFormat, Cluster: s.ClusterID, Slots: s.Slots, Made: time.Now().UTC().Format(time.RFC3339),
		Version: n.cfg.Version, Epoch: content.Epoch, ID: id, Control: body,
	})
	if err != nil {
		return err
	}
	if err := n.backupSlots(ctx, w, s.Slots, id); err != nil {
		return err
	}
	if now := n.control.State(); now.Policies != s.Policies {
		return fault.New(fault.Conflict, "policies changed while the backup was made (version %d, then %d): make it again", s.PolicyVersion, now.PolicyVersion)
	}
	return errors.Join(w.End(), out.Flush())
}

// backupSlots writes all slots, those that cannot be read at first later on.
func (n *Node) backupSlots(ctx context.Context, w *slotsWriter, slots int, id string) error {
	left := make([]uint16, slots)
	for i := range left {
		left[i] = uint16(i)
	}
	var why error
	for try := 1; ; try++ {
		var again []uint16
		for _, slot := range left {
			chunks, head, err := n.backupSlot(ctx, slot, fmt.Sprintf("backup %s %d", id, try))
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				again, why = append(again, slot), err
				continue
			}
			if err := w.slot(head, chunks); err != nil {
				return err
			}
		}
		if left = again; len(left) == 0 {
			return nil
		}
		if try == backupTries {
			return fault.New(fault.Unavailable, "%d slots cannot be read, slot %d because: %v", len(left), left[len(left)-1], why)
		}
		select {
		case <-time.After(backupPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// backupSlot reads one slot from its leader. It stays in memory until it is whole:
// what is in the file already cannot be taken back.
func (n *Node) backupSlot(ctx context.Context, slot uint16, reader string) (chunks [][]byte, head slotHead, err error) {
	s := n.control.State()
	node, replica, err := n.leaderReplica(s, s.SlotGroup[slot])
	if err != nil {
		return nil, head, err
	}
	head = slotHead{Slot: slot}
	c := readCall{Version: salvageVersion, Kind: fromReplica, Name: replica, Reader: reader, Slot: slot, Pass: 1, Whole: true}
	for ; ; c.Number++ {
		a, _, err := n.readFrom(ctx, node, c)
		if err != nil {
			return nil, head, fmt.Errorf("node %s: %w", node, err)
		}
		if a.chunk != nil {
			info, err := bucket.ParseChunk(a.chunk)
			if err != nil {
				return nil, head, err
			}
			head.Buckets += info.Cells
			chunks = append(chunks, a.chunk)
		}
		if head.Time = a.slotTime; a.last {
			return chunks, head, nil
		}
	}
}

// leaderReplica is the leader of a group: its node, and its id.
func (n *Node) leaderReplica(s *control.State, group uint32) (node, replica string, err error) {
	g, ok := s.Group(group)
	if c, led := n.table.leader(group); ok && led && c.serving && c.epoch == g.Epoch {
		for _, r := range g.Replicas {
			if r.Node == c.node && r.Role != control.Leaving {
				return c.node, g.ReplicaID(r), nil
			}
		}
	}
	return "", "", fault.New(fault.NoLeader, "group %d has no leader", group)
}

// slot writes a slot.
func (w *slotsWriter) slot(head slotHead, chunks [][]byte) error {
	err := w.json(slotfile.Slot, head)
	for _, chunk := range chunks {
		if err == nil {
			err = w.Write(slotfile.Chunk, chunk)
		}
	}
	return err
}

package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// digestVersion begins every digest; one that is newer is ignored.
const digestVersion = 1

// digest is what a node tells each other node with every ping: enough to know
// who leads what, how far each replica is, and whom the node can reach.
type digest struct {
	control  uint64   // control index applied
	stopping bool     // hands leadership over
	draining bool     // was told to stop, and waits for others to be whole
	up       []string // nodes it has a live link with
	replicas []replicaDigest
}

// replicaDigest is the state of one replica, read at one moment.
type replicaDigest struct {
	group, epoch  uint32
	serial        uint64
	applied       uint64
	chain         uint64 // rolling hash of what was applied, at applied
	term          uint64
	lastTerm      uint64 // of the newest entry of its log, committed or not
	lastIndex     uint64
	leads         bool // raft's leader
	serving       bool // leads, has applied everything before its term, and answers
	buckets, held uint64
	time          int64    // group time, ns
	voters        []uint64 // serials: applied, from the leader; from others of the newest configuration in their log
}

func appendDigest(b []byte, d *digest) []byte {
	b = append(b, digestVersion, flag(d.stopping)|flag(d.draining)<<1)
	b = binary.AppendUvarint(b, d.control)
	b = binary.AppendUvarint(b, uint64(len(d.up)))
	for _, name := range d.up {
		b = binary.AppendUvarint(b, uint64(len(name)))
		b = append(b, name...)
	}
	b = binary.AppendUvarint(b, uint64(len(d.replicas)))
	for i := range d.replicas {
		b = appendReplica(b, &d.replicas[i])
	}
	return b
}

func appendReplica(b []byte, r *replicaDigest) []byte {
	b = append(b, flag(r.leads)|flag(r.serving)<<1)
	for _, v := range [...]uint64{
		uint64(r.group), uint64(r.epoch), r.serial, r.applied, r.chain, r.term, r.lastTerm, r.lastIndex, r.buckets, r.held, uint64(r.time), uint64(len(r.voters)),
	} {
		b = binary.AppendUvarint(b, v)
	}
	for _, serial := range r.voters {
		b = binary.AppendUvarint(b, serial)
	}
	return b
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

var errShort = errors.New("digest is cut short")

// reader takes values off a digest; after the first fault all are zero.
type reader struct {
	b   []byte
	err error
}

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.err = errShort
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.b, r.err = nil, errShort
		return 0
	}
	r.b = r.b[n:]
	return v
}

// count reads a number of items of at least one byte each.
func (r *reader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.b, r.err = nil, errShort
		return 0
	}
	return int(n)
}

func (r *reader) text() string {
	n := r.count()
	v := string(r.b[:n])
	r.b = r.b[n:]
	return v
}

// leastReplica is the length of the shortest replica in a digest, in bytes.
const leastReplica = 13

func parseDigest(b []byte) (*digest, error) {
	r := &reader{b: b}
	if v := r.byte(); r.err == nil && v != digestVersion {
		return nil, fmt.Errorf("digest version %d: want %d", v, digestVersion)
	}
	flags := r.byte()
	d := &digest{stopping: flags&1 != 0, draining: flags&2 != 0, control: r.uint()}
	n := r.count()
	for d.up = slices.Grow(d.up, n); n > 0 && r.err == nil; n-- {
		d.up = append(d.up, r.text())
	}
	n = r.count()
	for d.replicas = slices.Grow(d.replicas, min(n, len(r.b)/leastReplica)); n > 0 && r.err == nil; n-- {
		d.replicas = append(d.replicas, parseReplica(r))
	}
	return d, r.err
}

func parseReplica(r *reader) replicaDigest {
	flags := r.byte()
	d := replicaDigest{
		leads: flags&1 != 0, serving: flags&2 != 0,
		group: uint32(r.uint()), epoch: uint32(r.uint()), serial: r.uint(),
		applied: r.uint(), chain: r.uint(), term: r.uint(), lastTerm: r.uint(), lastIndex: r.uint(),
		buckets: r.uint(), held: r.uint(), time: int64(r.uint()),
	}
	n := r.count()
	for d.voters = slices.Grow(d.voters, n); n > 0 && r.err == nil; n-- {
		d.voters = append(d.voters, r.uint())
	}
	return d
}

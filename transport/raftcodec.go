package transport

import (
	"encoding/binary"
	"time"

	"github.com/hashicorp/raft"
)

// The bodies of raft's messages: varints, in the order of the functions below.
// Each carries all fields of raft 1.8.0 but those that every message of a
// channel repeats: the header, Leader and Candidate are made anew from the
// channel by the receiver. Peers (protocol 0) is not carried.

// protocol is raft's protocol version; it is what this build's raft speaks.
const protocol = raft.ProtocolVersion(raft.ProtocolVersionMax)

// header is what raft puts on each message of a replica.
func header(id []byte) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: protocol, ID: id, Addr: id}
}

// isHeartbeat tells raft's heartbeats from its appends, as raft's own network
// transport does: all but the term is zero.
func isHeartbeat(a *raft.AppendEntriesRequest) bool {
	return a.Term != 0 && a.PrevLogEntry == 0 && a.PrevLogTerm == 0 && len(a.Entries) == 0 && a.LeaderCommitIndex == 0
}

func appendAppend(b []byte, a *raft.AppendEntriesRequest) []byte {
	b = binary.AppendUvarint(b, a.Term)
	b = binary.AppendUvarint(b, a.PrevLogEntry)
	b = binary.AppendUvarint(b, a.PrevLogTerm)
	b = binary.AppendUvarint(b, a.LeaderCommitIndex)
	b = binary.AppendUvarint(b, uint64(len(a.Entries)))
	for _, e := range a.Entries {
		b = binary.AppendUvarint(b, e.Index)
		b = binary.AppendUvarint(b, e.Term)
		b = append(b, byte(e.Type))
		var at int64 // 0: none
		if !e.AppendedAt.IsZero() {
			at = e.AppendedAt.UnixNano()
		}
		b = binary.AppendVarint(b, at)
		b = appendBytes(b, e.Extensions)
		b = appendBytes(b, e.Data)
	}
	return b
}

// minEntry is the size of the smallest entry on the wire.
const minEntry = 6

// decodeAppend reads an append of the replica id. The result shares nothing
// with body. ok is false for a malformed one.
func decodeAppend(body, id []byte) (a *raft.AppendEntriesRequest, ok bool) {
	d := decoder{b: body}
	a = &raft.AppendEntriesRequest{RPCHeader: header(id), Leader: id}
	a.Term, a.PrevLogEntry, a.PrevLogTerm, a.LeaderCommitIndex = d.uint(), d.uint(), d.uint(), d.uint()
	n := d.uint()
	if n == 0 {
		return a, d.end()
	}
	if n > uint64(len(d.b))/minEntry {
		return nil, false
	}
	logs := make([]raft.Log, n)
	a.Entries = make([]*raft.Log, n)
	own := append([]byte(nil), d.b...) // one copy for all data: raft keeps it
	d.b = own
	for i := range logs {
		e := &logs[i]
		e.Index, e.Term, e.Type = d.uint(), d.uint(), raft.LogType(d.byte())
		if at := d.int(); at != 0 {
			e.AppendedAt = time.Unix(0, at)
		}
		e.Extensions, e.Data = d.bytes(), d.bytes()
		if e.Type == raft.LogConfiguration && !d.bad && !validConfiguration(e.Data) {
			return nil, false
		}
		a.Entries[i] = e
	}
	return a, d.end()
}

// validConfiguration reports whether raft can decode it; raft itself panics.
func validConfiguration(b []byte) (ok bool) {
	defer func() { ok = recover() == nil }()
	raft.DecodeConfiguration(b)
	return true
}

func appendAppended(b []byte, r *raft.AppendEntriesResponse) []byte {
	b = binary.AppendUvarint(b, r.Term)
	b = binary.AppendUvarint(b, r.LastLog)
	b = appendBool(b, r.Success)
	return appendBool(b, r.NoRetryBackoff)
}

func decodeAppended(body, id []byte, r *raft.AppendEntriesResponse) bool {
	d := decoder{b: body}
	*r = raft.AppendEntriesResponse{RPCHeader: header(id), Term: d.uint(), LastLog: d.uint(), Success: d.bool(), NoRetryBackoff: d.bool()}
	return d.end()
}

func appendVote(b []byte, r *raft.RequestVoteRequest) []byte {
	b = binary.AppendUvarint(b, r.Term)
	b = binary.AppendUvarint(b, r.LastLogIndex)
	b = binary.AppendUvarint(b, r.LastLogTerm)
	return appendBool(b, r.LeadershipTransfer)
}

func decodeVote(body, id []byte) (*raft.RequestVoteRequest, bool) {
	d := decoder{b: body}
	r := &raft.RequestVoteRequest{
		RPCHeader: header(id), Candidate: id,
		Term: d.uint(), LastLogIndex: d.uint(), LastLogTerm: d.uint(), LeadershipTransfer: d.bool(),
	}
	return r, d.end()
}

func appendVoted(b []byte, r *raft.RequestVoteResponse) []byte {
	return appendBool(binary.AppendUvarint(b, r.Term), r.Granted)
}

func decodeVoted(body, id []byte, r *raft.RequestVoteResponse) bool {
	d := decoder{b: body}
	*r = raft.RequestVoteResponse{RPCHeader: header(id), Term: d.uint(), Granted: d.bool()}
	return d.end()
}

func appendPreVote(b []byte, r *raft.RequestPreVoteRequest) []byte {
	b = binary.AppendUvarint(b, r.Term)
	b = binary.AppendUvarint(b, r.LastLogIndex)
	return binary.AppendUvarint(b, r.LastLogTerm)
}

func decodePreVote(body, id []byte) (*raft.RequestPreVoteRequest, bool) {
	d := decoder{b: body}
	r := &raft.RequestPreVoteRequest{RPCHeader: header(id), Term: d.uint(), LastLogIndex: d.uint(), LastLogTerm: d.uint()}
	return r, d.end()
}

func appendPreVoted(b []byte, r *raft.RequestPreVoteResponse) []byte {
	return appendBool(binary.AppendUvarint(b, r.Term), r.Granted)
}

func decodePreVoted(body, id []byte, r *raft.RequestPreVoteResponse) bool {
	d := decoder{b: body}
	*r = raft.RequestPreVoteResponse{RPCHeader: header(id), Term: d.uint(), Granted: d.bool()}
	return d.end()
}

func appendSnapshot(b []byte, r *raft.InstallSnapshotRequest) []byte {
	b = binary.AppendVarint(b, int64(r.SnapshotVersion))
	b = binary.AppendUvarint(b, r.Term)
	b = binary.AppendUvarint(b, r.LastLogIndex)
	b = binary.AppendUvarint(b, r.LastLogTerm)
	b = appendBytes(b, r.Configuration)
	b = binary.AppendUvarint(b, r.ConfigurationIndex)
	return binary.AppendVarint(b, r.Size)
}

func decodeSnapshot(body, id []byte) (*raft.InstallSnapshotRequest, bool) {
	d := decoder{b: append([]byte(nil), body...)}
	r := &raft.InstallSnapshotRequest{RPCHeader: header(id), Leader: id}
	r.SnapshotVersion = raft.SnapshotVersion(d.int())
	r.Term, r.LastLogIndex, r.LastLogTerm = d.uint(), d.uint(), d.uint()
	r.Configuration, r.ConfigurationIndex, r.Size = d.bytes(), d.uint(), d.int()
	if !d.end() || r.Size < 0 || !validConfiguration(r.Configuration) {
		return nil, false
	}
	return r, true
}

func appendInstalled(b []byte, r *raft.InstallSnapshotResponse) []byte {
	return appendBool(binary.AppendUvarint(b, r.Term), r.Success)
}

func decodeInstalled(body, id []byte, r *raft.InstallSnapshotResponse) bool {
	d := decoder{b: body}
	*r = raft.InstallSnapshotResponse{RPCHeader: header(id), Term: d.uint(), Success: d.bool()}
	return d.end()
}

func appendHeartbeat(b []byte, a *raft.AppendEntriesRequest) []byte {
	return binary.AppendUvarint(b, a.Term)
}

func decodeHeartbeat(body, id []byte) (*raft.AppendEntriesRequest, bool) {
	d := decoder{b: body}
	return &raft.AppendEntriesRequest{RPCHeader: header(id), Leader: id, Term: d.uint()}, d.end()
}

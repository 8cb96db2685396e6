package group

import "github.com/hashicorp/raft"

// Status is what a replica knows about itself. Fields of the table are as of
// Applied; with Serving that is an index of Term or later.
type Status struct {
	ID      string
	Leader  string // id of the leader it knows, "" if none
	Term    uint64
	Leading bool  // raft's leader
	Serving bool  // leader, and an entry of its term is applied here
	Failed  error // why it stopped for good

	LastIndex, LastTerm uint64 // of its log, committed or not
	Commit              uint64
	Applied             uint64 // index applied to the table
	Chain               uint64 // hash over all entries up to Applied and what they decided
	Time                int64  // group time in ns
	Buckets             int
	HeldSlots           int
	LogBytes            int

	Voters, NonVoters []string // as of the newest applied configuration; do not change them
	ConfigIndex       uint64
}

// Status is cheap, and does not wait for an entry being applied.
func (r *Replica) Status() Status {
	serving := r.servingTerm() // before the view, which then holds all that was committed before that term
	v := r.fsm.view.load()
	s := Status{
		ID: r.cfg.ID, Leader: r.leader(), Serving: serving != 0,
		Applied: v.index, Chain: v.chain, Time: v.time, Buckets: v.buckets, HeldSlots: v.held,
		LogBytes: r.store.Bytes(),
		Voters:   v.servers.voters, NonVoters: v.servers.nonVoters, ConfigIndex: v.confAt,
	}
	if err := r.failed.Load(); err != nil {
		s.Failed = *err
	}
	s.LastIndex, s.LastTerm = r.store.Last()
	if s.LastIndex < v.index {
		s.LastIndex, s.LastTerm = v.index, v.term
	}
	if rf := r.raft.Load(); rf != nil {
		s.Term, s.Commit, s.Leading = rf.CurrentTerm(), rf.CommitIndex(), rf.State() == raft.Leader
	}
	if s.Serving { // raft may have moved on meanwhile
		s.Term, s.Leading = serving, true
	}
	return s
}

// Held says whether the group holds slot, as of what is applied here.
func (r *Replica) Held(slot uint16) bool {
	r.fsm.mu.Lock()
	defer r.fsm.mu.Unlock()
	return r.fsm.table.Held(slot)
}

// MemoryBytes is the memory of the table's cells and of its stored results.
func (r *Replica) MemoryBytes() (cells, results int) {
	r.fsm.mu.Lock()
	defer r.fsm.mu.Unlock()
	return r.fsm.table.MemoryBytes()
}

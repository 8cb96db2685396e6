package group

import "time"

// Timers are the waits of a replica. Zero means the default.
type Timers struct {
	Heartbeat   time.Duration // raft's heartbeat timeout, 500 ms
	Election    time.Duration // raft's election timeout, 500 ms
	Lease       time.Duration // a leader out of touch with a majority for so long steps down, 500 ms
	Commit      time.Duration // idle followers learn the commit index within it to twice it, 1 s
	Snapshot    time.Duration // metadata-only snapshots are taken at it to twice it, 2 s
	Stamp       time.Duration // an idle leader commits a stamp, 10 s
	Sweep       time.Duration // an idle leader that holds buckets or results commits a sweep instead, 1 s
	Enqueue     time.Duration // raft's main loop must take a proposal, 1 s
	Stall       time.Duration // an entry in flight for longer makes the leader hand over, 1.5 s
	Broken      time.Duration // … and if that does not help for so long the replica is to be replaced, 4 s
	Fatal       time.Duration // … and if it still runs after so long the process should end, 15 s
	OwnerDelay  time.Duration // the owner's link must be good for so long before it gets leadership, 10 s
	OwnerMax    time.Duration // … which doubles up to this after each early loss, 5 min
	TransferGap time.Duration // between two attempts to hand leadership over, 5 s
	Shutdown    time.Duration // raft must have ended after so long, 5 s
}

func (t Timers) withDefaults() Timers {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&t.Heartbeat, 500*time.Millisecond)
	set(&t.Election, 500*time.Millisecond)
	set(&t.Lease, 500*time.Millisecond)
	set(&t.Commit, time.Second)
	set(&t.Snapshot, 2*time.Second)
	set(&t.Stamp, 10*time.Second)
	set(&t.Sweep, time.Second)
	set(&t.Enqueue, time.Second)
	set(&t.Stall, 1500*time.Millisecond)
	set(&t.Broken, 4*time.Second)
	set(&t.Fatal, 15*time.Second)
	set(&t.OwnerDelay, 10*time.Second)
	set(&t.OwnerMax, 5*time.Minute)
	set(&t.TransferGap, 5*time.Second)
	set(&t.Shutdown, 5*time.Second)
	return t
}

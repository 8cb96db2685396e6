package main

import "math"

// memory is what a node holds, in bytes.
type memory struct {
	Buckets  float64 `json:"buckets"`  // live heap, of all its replicas
	Log      float64 `json:"log"`      // of their logs
	Results  float64 `json:"results"`  // of own ids
	Policies float64 `json:"policies"` // state and index
	Spare    float64 `json:"spare"`    // a replica more, which is made anew or dumped
	Heap     float64 `json:"heap"`     // what the collector needs beside what lives
	Resident float64 `json:"resident"` // all of it, with the process itself
}

// replica is the live heap of one replica.
func (x node) replica() (buckets, log, results float64) {
	t := x.takes()
	return x.buckets() * x.c.BucketBytes, math.Min(x.c.LogBound, t*x.c.EntryBytes*x.c.LogSeconds),
		t * x.l.OwnIDs * x.c.ResultBytes * x.c.ResultTime
}

// memory of a node with its replicas. A replica more is room for one that takes the
// place of a dead node's, for one that levels, and for the cells that change while one
// of its own is dumped.
func (x node) memory() memory {
	b, l, r := x.replica()
	k := 1 + x.followed()
	m := memory{Buckets: k * b, Log: k * l, Results: k * r, Policies: x.l.Policies * x.l.PolicyBytes * x.c.PolicyHeap, Spare: b + x.c.LogHeld*l + r}
	live := m.Buckets + m.Log + m.Results + m.Policies + m.Spare
	// While a whole file is put the old policies are there beside the new ones. The
	// log's pages are counted with the rest: they are taken from the heap too.
	put := x.l.Policies * x.l.PolicyBytes * x.c.PolicyPeak
	m.Heap = math.Max((x.c.Heap-1)*live, put-m.Policies)
	m.Resident = x.c.NodeBytes + live + m.Heap
	return m
}

func (x node) fitsMemory() bool { return x.memory().Resident <= x.s.Use*x.s.Memory }

// sweep is how long a pass of a group's sweep over its buckets takes, in seconds: so
// much later than full a bucket may be dropped. Eight cells for each commit and one for
// four takes, three quarters of the cells in use (bucket/sweep.go); what is visited for
// new buckets comes on top.
func (x node) sweep() float64 {
	t := x.takes()
	visited := math.Max(8*x.rounds(t)+t/4, 4096)
	return x.buckets() / 0.75 / visited
}

// longestReach is what reach ends at: a day of snapshots is no plan.
const longestReach = 24 * 3600

// reach is for how long the log of a group waits for a snapshot under way, in seconds:
// until it has taken a few times its bound (internal/ringlog, Hold).
func (x node) reach() float64 {
	t := x.takes()
	if t == 0 {
		return longestReach
	}
	return min(longestReach, x.c.LogHeld*x.c.LogBound/(t*x.c.EntryBytes))
}

// arrival is how long a snapshot of a group takes to a fresh replica. When it is more
// than reach, the log goes on without it, and it is sent another one.
func (x node) arrival() float64 { return x.buckets() * x.c.DumpBytes / x.s.CatchRate }

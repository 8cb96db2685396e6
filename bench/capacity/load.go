package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ringlimit/ringlimit/ring"
)

// load is what a deployment is asked to carry.
type load struct {
	Peak        float64       `json:"peak"`         // decisions a second at the worst hour
	Headroom    float64       `json:"headroom"`     // that much more must fit: 0.3 for 30 %
	Admitted    float64       `json:"admitted"`     // share of decisions that are admitted, 0 … 1: these are committed
	Keys        float64       `json:"keys"`         // buckets that are not full, now
	Growth      float64       `json:"growth"`       // of Keys a day: 0.05 for 5 %
	Days        float64       `json:"days"`         // ahead that the cluster is sized for
	IdleExpiry  time.Duration `json:"idle_expiry"`  // after its last admitted take a bucket is full again, and dropped; 0: never
	OwnIDs      float64       `json:"own_ids"`      // share of admitted takes under the caller's own id
	Policies    float64       `json:"policies"`     // number
	PolicyBytes float64       `json:"policy_bytes"` // of each, in its file
	Clients     float64       `json:"clients"`      // processes with the client library
	Gathered    float64       `json:"gathered"`     // takes that share a message of a client
}

// shape is how a cluster is made, and of what.
type shape struct {
	Replicas  int     `json:"replicas"`   // of each group
	Slots     int     `json:"slots"`      // fixed at bootstrap
	MaxNodes  int     `json:"max_nodes"`  // of one cluster
	Cores     float64 `json:"cores"`      // of a node
	Memory    float64 `json:"memory"`     // bytes of a node
	Network   float64 `json:"network"`    // bytes a second of a node, each way
	Use       float64 `json:"use"`        // share of each that may be used when all nodes are there
	Survive   bool    `json:"survive"`    // size for one node gone
	UseGone   float64 `json:"use_gone"`   // share of cores and network that may be used then
	MoveRate  float64 `json:"move_rate"`  // bytes a second of slots that leave a node, and of those that come to one
	CatchRate float64 `json:"catch_rate"` // bytes a second of a snapshot to a fresh replica
}

// defaultLoad is the load of the issue that this page answers.
func defaultLoad() load {
	return load{
		Peak: 115_740, Headroom: 0.3, Admitted: 0.9, Keys: 500e6, Growth: 0.05, Days: 30,
		IdleExpiry: 24 * time.Hour, Policies: 100_000, PolicyBytes: 1000, Clients: 1000, Gathered: 4,
	}
}

func defaultShape() shape {
	return shape{
		Replicas: 3, Slots: 1024, MaxNodes: ring.MaxNodes, Cores: 16, Memory: 64e9, Network: 10e9 / 8,
		Use: 0.7, Survive: true, UseGone: 0.9, MoveRate: 8e6, CatchRate: 100e6,
	}
}

// validate names the flag at fault.
func (l load) validate() error {
	for _, f := range []struct {
		name        string
		v, min, max float64
	}{
		{"peak", l.Peak, 0, 1e15},
		{"headroom", l.Headroom, 0, 100},
		{"admitted", l.Admitted, 0, 1},
		{"keys", l.Keys, 0, 1e18},
		{"growth", l.Growth, 0, 10},
		{"days", l.Days, 0, 3660},
		{"own-ids", l.OwnIDs, 0, 1},
		{"policies", l.Policies, 0, 1e9},
		{"policy-bytes", l.PolicyBytes, 0, 1e6},
		{"clients", l.Clients, 0, 1e9},
		{"gathered", l.Gathered, 1, 1000},
	} {
		if err := within(f.name, f.v, f.min, f.max); err != nil {
			return err
		}
	}
	if l.IdleExpiry < 0 {
		return fmt.Errorf("-idle-expiry %v: want 0 (never) or more", l.IdleExpiry)
	}
	return nil
}

func (s shape) validate() error {
	for _, f := range []struct {
		name        string
		v, min, max float64
	}{
		{"slots", float64(s.Slots), 1, ring.MaxSlots},
		{"max-nodes", float64(s.MaxNodes), 1, ring.MaxNodes},
		{"cores", s.Cores, 0.1, 10_000},
		{"memory", s.Memory, 1 << 20, 1 << 50},
		{"network", s.Network, 1e3, 1e15},
		{"use", s.Use, 0.01, 1},
		{"use-gone", s.UseGone, 0.01, 1},
		{"move-rate", s.MoveRate, 1e6, 1e15},
		{"catch-rate", s.CatchRate, 1e6, 1e15},
	} {
		if err := within(f.name, f.v, f.min, f.max); err != nil {
			return err
		}
	}
	switch {
	case s.Replicas < 1 || s.Replicas > 3:
		return fmt.Errorf("-replicas %d: want 1, 2 or 3", s.Replicas)
	case s.Slots < s.MaxNodes:
		return fmt.Errorf("-slots %d: want at least one for each of -max-nodes %d", s.Slots, s.MaxNodes)
	case s.Survive && s.Replicas < 3:
		return errors.New("-survive needs -replicas 3: a quorum of two of two survives nobody's death, say -survive=false")
	}
	return nil
}

func within(name string, v, least, most float64) error {
	if v >= least && v <= most { // NaN is neither
		return nil
	}
	return fmt.Errorf("-%s %g: want %g … %g", name, v, least, most)
}

// rate is the decisions a second that must fit.
func (l load) rate() float64 { return l.Peak * (1 + l.Headroom) }

// commits is how many of them are committed, denials the rest.
func (l load) commits() float64 { return l.rate() * l.Admitted }
func (l load) denials() float64 { return l.rate() * (1 - l.Admitted) }

// buckets is how many there are on the last day: no more than keys grown so far,
// and no more than takes were admitted before the first of them is full again.
func (l load) buckets() float64 {
	n := l.Keys * math.Pow(1+l.Growth, l.Days)
	if l.IdleExpiry > 0 {
		n = min(n, l.Peak*l.Admitted*l.IdleExpiry.Seconds())
	}
	return n
}

// times is the same load, so many times.
func (l load) times(x float64) load {
	l.Peak, l.Keys, l.Clients = l.Peak*x, l.Keys*x, l.Clients*x
	return l
}

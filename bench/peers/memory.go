package main

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Memory is what a number of keys takes in each process of a system.
type Memory struct {
	System    string   `json:"system"`
	Keys      int      `json:"keys"`
	Processes []Holder `json:"processes"`
}

// Holder is one process, in bytes: before there are keys, just after every key was
// touched once, and when what only the last minute needs has gone.
type Holder struct {
	Name     string     `json:"name"`
	Resident [3]float64 `json:"resident"`
	Held     [3]float64 `json:"held,omitempty"` // live heap of ours, used_memory of Redis; 0: not known
}

// aMinute is longer than our log keeps what every replica has.
const aMinute = 75 * time.Second

// memory measures what is missing of it, each number of keys in a system that is new.
func (r *Run) memory(ctx context.Context, file string) error {
	for _, keys := range r.Memory {
		for _, system := range systemsOf(r.Contenders) {
			if slices.ContainsFunc(r.results.Memory, func(m Memory) bool { return m.System == system && m.Keys == keys }) {
				continue
			}
			if r.Limit > 0 && time.Since(r.began) > r.Limit {
				return errUnfinished
			}
			m, err := r.weigh(ctx, system, keys)
			if err != nil {
				return fmt.Errorf("memory of %s at %d keys: %w", system, keys, err)
			}
			r.results.Memory = append(r.results.Memory, m)
			r.say("memory, %s, %d keys: %s\n", system, keys, m.words())
			if err := r.results.save(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// weigh starts a system and fills it.
func (r *Run) weigh(ctx context.Context, system string, keys int) (Memory, error) {
	m := Memory{System: system, Keys: keys}
	setup := r.setup(system)
	setup.Keys = keys
	s, err := start(ctx, system, setup)
	if err != nil {
		return m, err
	}
	defer s.Close()
	for _, n := range s.Nodes() {
		m.Processes = append(m.Processes, Holder{Name: n.Name})
	}
	if err := m.read(ctx, s, 0); err != nil {
		return m, err
	}
	if err := fill(ctx, system, s, keys, r.Tuning); err != nil {
		return m, err
	}
	if err := m.read(ctx, s, 1); err != nil {
		return m, err
	}
	select {
	case <-time.After(aMinute):
	case <-ctx.Done():
		return m, ctx.Err()
	}
	return m, m.read(ctx, s, 2)
}

// read takes one look at every process.
func (m *Memory) read(ctx context.Context, s System, look int) error {
	for i, n := range s.Nodes() { // first, as collecting garbage changes it
		resident, err := n.Resident()
		if err != nil {
			return err
		}
		m.Processes[i].Resident[look] = resident
	}
	held, err := s.Held(ctx)
	for i := range held {
		m.Processes[i].Held[look] = held[i]
	}
	return err
}

// perKey is what a key takes, in bytes, at a look: for replicated systems the mean
// process, since each holds every key; for gubernator all together, since one does.
func (m *Memory) perKey(of func(*Holder) [3]float64, look int) float64 {
	total := 0.0
	for i := range m.Processes {
		v := of(&m.Processes[i])
		total += v[look] - v[0]
	}
	if m.System != guber {
		total /= float64(len(m.Processes))
	}
	return total / float64(m.Keys)
}

func resident(h *Holder) [3]float64 { return h.Resident }
func held(h *Holder) [3]float64     { return h.Held }

func (m *Memory) words() string {
	return fmt.Sprintf("bytes a key: resident %.0f, later %.0f; held %.1f, later %.1f",
		m.perKey(resident, 1), m.perKey(resident, 2), m.perKey(held, 1), m.perKey(held, 2))
}

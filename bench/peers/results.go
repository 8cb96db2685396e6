package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

// Results is all that was measured, as it stands in results.json.
type Results struct {
	Machine  Machine  `json:"machine"`
	Settings Settings `json:"settings"`
	Samples  []Sample `json:"samples"`
	Memory   []Memory `json:"memory,omitempty"`
}

// Settings are those that samples must share to be compared.
type Settings struct {
	Keys     int    `json:"keys"`
	Warm     string `json:"warm"`
	Duration string `json:"duration"`
	Tuning   Tuning `json:"tuning"`
}

// Sample is one measurement: what it is of, and what came out.
type Sample struct {
	Round     int    `json:"round"`
	Contender string `json:"contender"`
	Kind      Kind   `json:"traffic"`
	Point     string `json:"point"`
	Outcome   `json:"outcome"`
	Failed    string `json:"failed,omitempty"` // why there is no outcome
}

// load reads stored results; none are empty ones.
func loadResults(file string) (*Results, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return &Results{}, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Results{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// save writes all at once: a run that is broken off leaves what it had.
func (r *Results) save(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// has says whether a measurement was made, and was not disturbed.
func (r *Results) has(round int, contender string, kind Kind, point string) bool {
	return slices.ContainsFunc(r.Samples, func(s Sample) bool {
		return s.Round == round && s.Contender == contender && s.Kind == kind && s.Point == point && !s.disturbed()
	})
}

// add keeps a sample, in place of one of the same that was disturbed.
func (r *Results) add(s Sample) {
	r.Samples = slices.DeleteFunc(r.Samples, func(old Sample) bool {
		return old.Round == s.Round && old.Contender == s.Contender && old.Kind == s.Kind && old.Point == s.Point
	})
	r.Samples = append(r.Samples, s)
}

// of returns the samples of one cell, in order of rounds.
func (r *Results) of(contender string, kind Kind, point string) []Sample {
	var found []Sample
	for _, s := range r.Samples {
		if s.Contender == contender && s.Kind == kind && s.Point == point {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, func(a, b Sample) int { return a.Round - b.Round })
	return found
}

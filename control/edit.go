package control

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ringlimit/ringlimit/policy"
)

// edit gathers what one command does to the policies of a clone, whose old set
// stays as it is until done.
type edit struct {
	s       *State
	old     *policy.Set
	next    *policy.Set // a copy of old whose slices are still shared
	version uint64      // of all that the command makes
	entry   *Entry
	changed []*policy.Policy // new ones, as they are in next
	past    []Past
}

// edit begins a change of policies; it is refused before Found.
func (s *State) edit(action Action, by Author) (*edit, error) {
	if s.ClusterID == "" {
		return nil, errNotFounded()
	}
	if err := by.check(); err != nil {
		return nil, err
	}
	next := *s.Policies
	version := s.PolicyVersion + 1
	return &edit{
		s: s, old: s.Policies, next: &next, version: version,
		entry: &Entry{Version: version, Action: action, Author: by},
	}, nil
}

// made notes a policy that takes the place of another, or of none (nil), and
// returns it with its version.
func (e *edit) made(was, now *policy.Policy) *policy.Policy {
	p := *now
	p.Version = e.version
	from := uint64(0)
	if was != nil {
		from = was.Version
		e.past = append(e.past, Past{Policy: was, Ended: e.version})
	}
	e.changed = append(e.changed, &p)
	e.note(VersionChange{p.ID, from, p.Version})
	return &p
}

// drop notes a policy that is deleted.
func (e *edit) drop(was *policy.Policy) {
	e.past = append(e.past, Past{Policy: was, Ended: e.version, Deleted: true})
	e.note(VersionChange{was.ID, was.Version, 0})
}

func (e *edit) note(c VersionChange) {
	if e.entry.Total++; e.entry.Total <= maxChanges {
		e.entry.Changes = append(e.entry.Changes, c)
	}
}

// put is made, in the set.
func (e *edit) put(was, now *policy.Policy) { e.next = e.next.With(e.made(was, now)) }

// merge puts policies, by id, into the set. again says which get a new version
// also for equal content.
func (e *edit) merge(policies []*policy.Policy, prune bool, again func(now *policy.Policy) bool) {
	merged := make([]*policy.Policy, 0, max(len(policies), len(e.old.Policies)))
	i := 0
	keep := func(p *policy.Policy) {
		if prune {
			e.drop(p)
		} else {
			merged = append(merged, p)
		}
	}
	for _, p := range policies {
		for ; i < len(e.old.Policies) && e.old.Policies[i].ID < p.ID; i++ {
			keep(e.old.Policies[i])
		}
		var was *policy.Policy
		if i < len(e.old.Policies) && e.old.Policies[i].ID == p.ID {
			was = e.old.Policies[i]
			i++
		}
		if was != nil && was.Same(p) && !again(was) {
			merged = append(merged, was)
			continue
		}
		merged = append(merged, e.made(was, p))
	}
	for _, p := range e.old.Policies[i:] {
		keep(p)
	}
	e.next.Policies = merged
}

// notAbove refuses the change of anything above a version. judged are policies
// to judge even if they are not changed.
func (e *edit) notAbove(version uint64, all bool, judged []*policy.Policy) error {
	for _, p := range e.past {
		if p.Policy.Version > version {
			return stale(p.Policy.ID, version, p.Policy.Version)
		}
	}
	for _, p := range e.changed { // one that was deleted meanwhile is not to come back
		if _, there := e.old.Find(p.ID); !there {
			if ended := e.s.ended(p.ID); ended > version {
				return stale(p.ID, version, ended)
			}
		}
	}
	for _, p := range judged {
		if now, ok := e.old.Find(p.ID); ok && all && now.Version > version {
			return stale(p.ID, version, now.Version)
		}
	}
	if e.settingsChanged() && e.s.SettingsVersion > version {
		return stale("", version, e.s.SettingsVersion)
	}
	return nil
}

func (e *edit) settingsChanged() bool {
	return e.old.NoMatch != e.next.NoMatch || e.classesChanged()
}

func (e *edit) classesChanged() bool {
	return !slices.EqualFunc(e.old.RouteClasses, e.next.RouteClasses, func(a, b policy.RouteClass) bool {
		return a.Name == b.Name && slices.Equal(a.Routes, b.Routes)
	})
}

// done judges the whole and makes it the state's.
func (e *edit) done() (bool, error) {
	s := e.s
	settings := e.settingsChanged()
	if len(e.changed) == 0 && len(e.past) == 0 && !settings {
		return false, nil
	}
	judged := e.changed
	if e.classesChanged() {
		judged = e.next.Policies
	}
	if err := e.next.CheckChanged(judged); err != nil {
		return false, invalidPolicies(err)
	}
	if settings {
		s.SettingsVersion = e.version
		e.detail("settings")
	}
	e.dropOverrides()
	e.next.Omitted = nil
	s.Policies, s.PolicyVersion = e.next, e.version
	s.keepPast(e.past)
	s.note(e.entry)
	return true, nil
}

func (e *edit) detail(text string) {
	e.entry.Detail = strings.TrimPrefix(e.entry.Detail+", "+text, ", ")
}

// dropOverrides ends the overrides of policies that are gone or do not count by
// what the key names any more.
func (e *edit) dropOverrides() {
	if len(e.old.Overrides) == 0 {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(e.old.Overrides), func(o *policy.Override) bool {
		return e.next.CheckOverride(o) != nil
	})
	if n := len(e.old.Overrides) - len(kept); n > 0 {
		e.next.Overrides = kept
		e.detail("overrides ended: " + number(uint64(n)))
	}
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

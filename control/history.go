package control

import (
	"slices"
	"sort"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/policy"
)

// Past is a version of a policy that is in force no more.
type Past struct {
	Policy  *policy.Policy `json:"policy"`
	Ended   uint64         `json:"ended"`             // the version of the command that ended it
	Deleted bool           `json:"deleted,omitempty"` // that command deleted the policy
}

// keepPast appends superseded versions and forgets the oldest beyond the bounds.
func (s *State) keepPast(past []Past) {
	if len(past) == 0 {
		return
	}
	past = past[max(0, len(past)-maxPast):]
	old := s.Past[max(0, len(s.Past)+len(past)-maxPast):]
	all := append(append(make([]Past, 0, len(old)+len(past)), old...), past...)
	count := make(map[string]int, len(past))
	for _, p := range past {
		count[p.Policy.ID] = 0
	}
	kept := len(all) // from the end
	for i := len(all) - 1; i >= 0; i-- {
		n, touched := count[all[i].Policy.ID]
		if touched {
			count[all[i].Policy.ID] = n + 1
		}
		if n < maxPastOf {
			kept--
			all[kept] = all[i]
		}
	}
	s.Past = slices.Clip(all[kept:])
}

// ended returns the newest version at which a policy was deleted, 0 if that is
// not known.
func (s *State) ended(id string) uint64 {
	for i := len(s.Past) - 1; i >= 0; i-- {
		if p := &s.Past[i]; p.Deleted && p.Policy.ID == id {
			return p.Ended
		}
	}
	return 0
}

// version finds a version of a policy, the present one included.
func (s *State) version(id string, version uint64) (*policy.Policy, bool) {
	if p, ok := s.Policies.Find(id); ok && p.Version == version {
		return p, true
	}
	for i := len(s.Past) - 1; i >= 0; i-- {
		if p := s.Past[i].Policy; p.ID == id && p.Version == version {
			return p, true
		}
	}
	return nil, false
}

// Version is one version of a policy in its history.
type Version struct {
	Version uint64         `json:"version"`
	Policy  *policy.Policy `json:"policy,omitempty"` // nil: deleted by this version
	Made    *Entry         `json:"made,omitempty"`   // by whom and when; nil: not kept any more
}

// History returns the versions of a policy, newest first, as far as they are
// kept. It is empty for a policy that never was or is forgotten.
func (s *State) History(id string) []Version {
	var out []Version
	if s.Policies == nil {
		return out
	}
	if p, ok := s.Policies.Find(id); ok {
		out = append(out, Version{p.Version, p, s.Made(p.Version)})
	}
	for i := len(s.Past) - 1; i >= 0; i-- {
		p := &s.Past[i]
		if p.Policy.ID != id {
			continue
		}
		if p.Deleted {
			out = append(out, Version{p.Ended, nil, s.Made(p.Ended)})
		}
		out = append(out, Version{p.Policy.Version, p.Policy, s.Made(p.Policy.Version)})
	}
	return out
}

// Made returns the entry of the audit log that made a version, nil if it is not
// kept any more.
func (s *State) Made(version uint64) *Entry {
	i := sort.Search(len(s.Audit), func(i int) bool { return s.Audit[i].Version >= version })
	if i == len(s.Audit) || s.Audit[i].Version != version {
		return nil
	}
	return s.Audit[i]
}

// invalidPolicies makes an error of package policy one of this.
func invalidPolicies(err error) error { return fault.Field("policies", "%v", err) }

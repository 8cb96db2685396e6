package control

import (
	"fmt"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
)

// Author is who made a change, as the audit log keeps it.
type Author struct {
	Who    string `json:"who,omitempty"`    // at most maxAuthor bytes
	When   string `json:"when,omitempty"`   // RFC 3339, by the clock of the proposer
	Source string `json:"source,omitempty"` // such as a file name; at most maxText bytes
}

const maxAuthor = 256

func (a Author) check() error {
	switch {
	case len(a.Who) > maxAuthor:
		return fault.Field("by.who", "%d bytes, want at most %d", len(a.Who), maxAuthor)
	case len(a.Source) > maxText:
		return fault.Field("by.source", "%d bytes, want at most %d", len(a.Source), maxText)
	}
	if _, err := time.Parse(time.RFC3339, a.When); a.When != "" && err != nil {
		return fault.Field("by.when", "%q, want RFC 3339 such as 2006-01-02T15:04:05Z", a.When)
	}
	return nil
}

// Entry is one line of the audit log: one command that changed policies or
// overrides. Each has a version of its own, which all that it made share.
type Entry struct {
	Version uint64 `json:"version"`
	Action  Action `json:"action"`
	Author
	Changes []VersionChange `json:"changes,omitempty"` // by policy; at most maxChanges of them
	Total   int             `json:"total"`             // how many there were
	Detail  string          `json:"detail,omitempty"`  // what else changed, in words
}

// VersionChange is the version of one policy before and after a command; 0: it
// was not there.
type VersionChange struct {
	ID   string `json:"id"`
	From uint64 `json:"from,omitempty"`
	To   uint64 `json:"to,omitempty"`
}

// Action is what a command does to policies, in a word.
type Action string

// The actions.
const (
	ActionFound         Action = "found"
	ActionPut           Action = "put"
	ActionDelete        Action = "delete"
	ActionRollback      Action = "rollback"
	ActionOverride      Action = "override"
	ActionClearOverride Action = "clear_override"
	ActionExpire        Action = "expire_override"
)

// The bounds of what is kept.
const (
	maxAudit   = 10_000 // entries of the audit log
	maxChanges = 100    // policies named in one entry
	maxPast    = 20_000 // superseded versions of all policies together
	maxPastOf  = 100    // superseded versions of one policy
)

// note appends an entry to the audit log of a clone.
func (s *State) note(e *Entry) {
	keep := s.Audit[max(0, len(s.Audit)-maxAudit+1):]
	s.Audit = append(append(make([]*Entry, 0, len(keep)+1), keep...), e)
}

// ErrStale is the kind of error of a change whose If-Match names another version
// than the present one: nothing changed. Read again, and decide again.
var ErrStale = fault.PreconditionFailed

// stale says that the policy of an id, or what stands beside the policies (""),
// has another version than a change names; 0: it is not there.
func stale(id string, ifMatch, version uint64) error {
	what := fmt.Sprintf("policy %q", id)
	if id == "" {
		what = "what stands beside the policies"
	}
	if version == 0 {
		return fault.New(ErrStale, "%s does not exist, If-Match names version %d", what, ifMatch)
	}
	return fault.New(ErrStale, "%s has version %d, If-Match names %d", what, version, ifMatch)
}

// Package policy says which policies a request falls under and which buckets it
// counts against. It parses and validates policy files and compiles a set of
// policies into an index that answers without looking at those that cannot match.
//
// A name in a match, a scope or the home is reserved (tenant, route, method,
// plan, region), or the type of a principal if the request has one of that type,
// else a free attribute. An empty value counts as absent.
//
// The package is pure: no clock, goroutine, socket or log. An Index never
// changes, so any number of goroutines may ask it at once.
package policy

import "github.com/ringlimit/ringlimit/bucket"

// Action is what happens to a request that no policy matches.
type Action uint8

// The actions. The zero Action is Allow, the default of a file.
const (
	Allow Action = iota
	Deny
)

// Set is all policies of a cluster at one time. It is a value that nobody
// changes once it is shared.
type Set struct {
	Home     []string // names whose values say where a request is decided; never empty
	NoMatch  Action
	Policies []Policy
}

// Policy is one rule: which requests it matches, what it counts together, its
// limit. It applies to a request that satisfies all of Match and has all of Scope.
//
// Its buckets live in the slot of the home values if Scope holds all home names,
// else in the slot of the scope's own names and values: by the scope alone, never
// by what else a request has.
type Policy struct {
	ID      string            // printable ASCII, 1 … 128 bytes, unique in its set
	Version uint64            // given by the control state; 0: not given yet
	Match   map[string]string // name → exact value, "prefix*" or "*"; empty matches any request
	Scope   []string          // names; requests equal in all of them share a bucket
	Limit   bucket.Limit
}

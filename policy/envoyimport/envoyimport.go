// Package envoyimport turns the configuration of envoyproxy/ratelimit into policies
// that answer the descriptors of Envoy alike, and tells each difference that is left.
//
// There the limit of a descriptor is found by walking a tree, entry by entry, the most
// specific child first. Here every policy that matches applies, and of a family the
// most specific one. So each limit of the tree becomes a policy that matches exactly
// the descriptors of its shape, those that can meet share a family, and where the two
// orders disagree a policy for just that overlap settles it: see cover.go.
//
// It is pure, as all of policy.
package envoyimport

import (
	"fmt"
	"strings"

	"github.com/ringlimit/ringlimit/bucket"
	"github.com/ringlimit/ringlimit/policy"
)

// File is one configuration file.
type File struct {
	Name string // to show in errors, in notes and in the comments of what is written
	Data []byte
}

// Options say how limits are counted.
type Options struct {
	Algorithm bucket.Algorithm // of all limits; one that has no burst, or TokenBucket
}

// Note is one difference between the configuration and what was made of it.
type Note struct {
	File string // "": all files
	Line int
	Path string // such as descriptors[1].rate_limit
	Text string
}

func (n Note) String() string {
	if n.File == "" {
		return n.Text
	}
	return fmt.Sprintf("%s:%d: %s: %s", n.File, n.Line, n.Path, n.Text)
}

// Result is what was made of a configuration.
type Result struct {
	YAML  []byte // a policy file
	Set   *policy.Set
	Notes []Note
}

// Import makes policies of all files. Several files may have parts of one domain.
// Every error is a *policy.ParseError; no input panics.
func Import(files []File, o Options) (*Result, error) {
	im := &importer{options: o, domains: map[string]*domain{}, ids: map[string]bool{}}
	for _, f := range files {
		if err := im.file(f); err != nil {
			return nil, err
		}
	}
	for _, name := range im.order {
		if err := im.convert(im.domains[name]); err != nil {
			return nil, err
		}
	}
	im.general()
	if len(im.policies) > policy.MaxPolicies {
		return nil, &policy.ParseError{Reason: fmt.Sprintf("%d policies, want at most %d", len(im.policies), policy.MaxPolicies)}
	}
	out := &Result{YAML: im.write(files), Notes: im.notes}
	var err error
	if out.Set, err = policy.Parse("imported policies", out.YAML); err != nil {
		return nil, err
	}
	return out, nil
}

// importer is an import on its way.
type importer struct {
	options  Options
	domains  map[string]*domain
	order    []string // of domains
	ids      map[string]bool
	policies []made
	notes    []Note
}

func (im *importer) note(n *node, field, format string, args ...any) {
	im.notes = append(im.notes, Note{n.file, n.line, strings.TrimSuffix(n.path+"."+field, "."), fmt.Sprintf(format, args...)})
}

// general tells what is different about every limit.
func (im *importer) general() {
	if len(im.policies) == 0 {
		return
	}
	say := func(text string) { im.notes = append(im.notes, Note{Text: text}) }
	say("all limits: a request that is denied is not counted, so it does not keep its key over the limit")
	switch im.options.Algorithm {
	case bucket.FixedWindow:
		say("all limits: the windows of each key begin at a time of its own, not with the minute or hour of a clock; around an edge twice the amount can pass")
	case bucket.TokenBucket:
		say("all limits: what is used comes back little by little, not at the end of a window; after a pause the whole amount is there at once")
	default:
		say("all limits: the window slides, so no second amount can be used around the edge of a minute or hour")
	}
	say("current_limit.name is the id of the policy")
}

// fail is an error at a place in a file.
func fail(file string, at pos, field, format string, args ...any) error {
	return &policy.ParseError{File: file, Line: at.line, Column: at.column, Field: field, Reason: fmt.Sprintf(format, args...)}
}

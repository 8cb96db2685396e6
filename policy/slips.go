package policy

import (
	"fmt"
	"strings"
)

// known are the names that most requests have: reserved ones and the usual types
// of principals.
var known = []string{
	"tenant", "route", "method", "route_class", "plan", "region",
	"user", "ip", "api_key", "oauth_token", "service",
}

// maxSlips bounds the slips told of one file.
const maxSlips = 20

// slips returns what in a set is legal and likely a slip: names that are free
// attributes and look like others that are not. The fields are as in Validate.
func (s *Set) slips() (out []error) {
	meant := map[string]string{} // name → what it looks like, "" for nothing
	look := func(i int, field, name string) {
		like, judged := meant[name]
		if !judged {
			like = likeKnown(name)
			meant[name] = like
		}
		if like != "" && len(out) < maxSlips {
			out = append(out, at(i, invalid(field, "%q is a free attribute, which no request has unless its caller names it so; is %s meant?", name, like)))
		}
	}
	for i, p := range s.Policies {
		for _, c := range p.Match {
			look(i, "match."+c.Name, c.Name)
		}
		for k, name := range p.Scope {
			look(i, fmt.Sprintf("scope[%d]", k), name)
		}
	}
	return out
}

// likeKnown is the known name that a name is a slip of the pen from, "" if it is
// one itself or like none. What is short must be closer.
func likeKnown(name string) string {
	best, least := "", 3
	for _, k := range known {
		if name == k {
			return ""
		}
		if strings.EqualFold(name, k) {
			return k
		}
		if len(k) < 4 {
			continue // ip: everything short is like it
		}
		d := distance(strings.ToLower(name), k)
		if bound := 1 + len(k)/10; d <= bound && d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters must be put in, left out, changed, or swapped
// with the next to make one word of the other (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			other := 1
			if a[i-1] == b[j-1] {
				other = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+other)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// checkNewRoute says why no request can have a route that a condition wants.
// Those in force may have been put by a build that was less strict.
func checkNewRoute(value string) error {
	text, prefix := strings.CutSuffix(value, "*")
	method, path, colon := strings.Cut(text, ":")
	switch {
	case !colon && prefix && validMethod(text):
		return nil // a part of a method, or nothing
	case colon && method != "" && validMethod(method) && (strings.HasPrefix(path, "/") || prefix && path == ""):
		return nil
	}
	return fmt.Errorf("%q, want METHOD:/path as requests have it, such as %q", value, likelyRoute(text, prefix))
}

// likelyRoute is what may have been meant.
func likelyRoute(text string, prefix bool) string {
	method, path, colon := strings.Cut(text, ":")
	if before, after, ok := strings.Cut(text, " "); !colon && ok { // GET /path
		method, path, colon = before, after, true
	}
	if upper := strings.ToUpper(method); !colon || upper == "" || !validMethod(upper) {
		method, path = "GET", text
	}
	out := strings.ToUpper(method) + ":/" + strings.TrimLeft(path, "/ ")
	if prefix {
		out += "*"
	}
	return out
}

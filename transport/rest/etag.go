package rest

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/ringlimit/ringlimit/api/fault"
)

// etag is the version of a policy, or of all of them, as HTTP has it.
func etag(version uint64) string { return `"policy-version-` + strconv.FormatUint(version, 10) + `"` }

// parseEtag is its inverse.
func parseEtag(tag string) (version uint64, ok bool) {
	tag, ok = strings.CutPrefix(tag, `"policy-version-`)
	if !ok {
		return 0, false
	}
	tag, ok = strings.CutSuffix(tag, `"`)
	if !ok {
		return 0, false
	}
	version, err := strconv.ParseUint(tag, 10, 64)
	return version, err == nil && tag == strconv.FormatUint(version, 10)
}

// ifMatch is the version that a change is for: nil without a condition, 0 where there
// must be no policy yet (If-None-Match: *). A tag that no policy can have is 412.
func (c *call) ifMatch(create bool) (*uint64, error) {
	match, ok, err := c.header("If-Match")
	if err != nil {
		return nil, err
	}
	none, never, err := c.header("If-None-Match")
	switch {
	case err != nil:
		return nil, err
	case never && !create:
		return nil, fault.Field("If-None-Match", "given for a deletion, want If-Match or none")
	case ok && never:
		return nil, fault.Field("If-None-Match", "given together with If-Match, want one of them")
	case never && strings.TrimSpace(none) != "*":
		return nil, fault.Field("If-None-Match", "%s, want *: there must be no such policy yet", printable(none))
	case never:
		return new(uint64), nil
	case !ok:
		return nil, nil
	}
	tag := strings.TrimSpace(match)
	if tag == "*" || strings.Contains(tag, ",") {
		return nil, fault.Field("If-Match", "%s, want one version such as %s", printable(tag), etag(812))
	}
	version, ok := parseEtag(tag)
	if !ok {
		return nil, &refusal{status: http.StatusPreconditionFailed, field: "If-Match", detail: printable(tag) + " is the version of no policy, want one such as " + etag(812)}
	}
	return &version, nil
}

// unchanged answers 304 where the caller has this version.
func (c *call) unchanged(version uint64) bool {
	c.w.Header()["Etag"] = []string{etag(version)}
	for _, list := range c.r.Header["If-None-Match"] {
		for tag := range strings.SplitSeq(list, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == "*" || tag == etag(version) {
				c.w.Header()["Cache-Control"] = noCache
				c.w.WriteHeader(http.StatusNotModified)
				return true
			}
		}
	}
	return false
}

// noCache is for what a cache may keep if it asks each time whether it still holds.
var noCache = []string{"no-cache"}

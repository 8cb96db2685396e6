package httplimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/httplimit"
)

// scoped is a decider that knows what its policies count by.
type scoped struct {
	*fake
	scopes map[string][]client.ScopeValue
}

func (s *scoped) Scope(_ client.Request, policyID string) ([]client.ScopeValue, bool) {
	scope, ok := s.scopes[policyID]
	return scope, ok
}

var _ httplimit.Decider = (*scoped)(nil)

// TestScopeIsThatOfTheDenier, without its credentials; and that of the request where the
// policy is not known.
func TestScopeIsThatOfTheDenier(t *testing.T) {
	for name, c := range map[string]struct {
		scope []client.ScopeValue
		known bool
		want  string
	}{
		"of the policy":    {[]client.ScopeValue{{Name: "api_key", Value: "k-7"}, {Name: "route_class", Value: "export"}}, true, `"limit_scope":"api_key:*:route_class:export"`},
		"of nothing":       {nil, true, ""},
		"not known":        {nil, false, `"limit_scope":"tenant:acme:route:search"`},
		"a value is empty": {[]client.ScopeValue{{Name: "tenant", Value: "acme"}, {Name: "plan"}}, true, `"limit_scope":"tenant:acme"`},
	} {
		s := &scoped{fake: &fake{decision: deniedFor(time.Second)}, scopes: map[string][]client.ScopeValue{}}
		if c.known {
			s.scopes["search"] = c.scope
		}
		w := ask(s, get("/"), tenant("acme"), route("search"))
		if body := w.Body.String(); c.want == "" && strings.Contains(body, "limit_scope") || !strings.Contains(body, c.want) {
			t.Errorf("%s: %s", name, body)
		}
	}
}

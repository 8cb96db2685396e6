package fallback

import "github.com/ringlimit/ringlimit/policy"

// Scope is what a policy counts a valid request by: the names of its scope, in their order,
// with the request's values. ok is false if r has no such policy.
func (r *Rules) Scope(q *policy.Request, id string) (scope []policy.Attribute, ok bool) {
	p, ok := r.index.Set().Find(id)
	if !ok {
		return nil, false
	}
	for _, name := range p.Scope {
		scope = append(scope, policy.Attribute{Name: name, Value: r.index.Value(q, name)})
	}
	return scope, true
}

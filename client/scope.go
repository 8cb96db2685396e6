package client

// ScopeValue is one of the attributes that a policy counts by, and what a request has there.
type ScopeValue struct{ Name, Value string }

// Scope tells what a policy counts r by, in the order of the policy's scope: which bucket it
// is that denied. ok is false where the client does not know the policy, as one that never
// degrades, or r is not valid. It asks nobody.
func (c *Client) Scope(r Request, policyID string) (scope []ScopeValue, ok bool) {
	rules := c.rules.Load()
	if rules == nil {
		return nil, false
	}
	q := r.policyRequest()
	if q.Validate() != nil {
		return nil, false
	}
	attributes, ok := rules.Scope(q, policyID)
	for _, a := range attributes {
		scope = append(scope, ScopeValue(a))
	}
	return scope, ok
}

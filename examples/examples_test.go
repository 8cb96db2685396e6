package examples

import (
	"testing"

	"github.com/ringlimit/ringlimit/policy"
)

// TestSamplePoliciesAreValid: what a newcomer reads first must load.
func TestSamplePoliciesAreValid(t *testing.T) {
	if _, err := policy.Parse("policies.yaml", Policies); err != nil {
		t.Error(err)
	}
}

package main

import (
	"testing"

	"github.com/ringlimit/ringlimit/policy"
)

// TestScenarioPoliciesAreValid, so that a mistake shows here and not as a
// cluster that does not start.
func TestScenarioPoliciesAreValid(t *testing.T) {
	if _, err := policy.Parse("policies.yaml", policies); err != nil {
		t.Error(err)
	}
}

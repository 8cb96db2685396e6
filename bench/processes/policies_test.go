package main

import (
	"testing"

	"github.com/ringlimit/ringlimit/policy"
)

// TestLoadPoliciesAreValid, so that a mistake shows here and not as a
// cluster that does not start.
func TestLoadPoliciesAreValid(t *testing.T) {
	if _, err := policy.Parse("policies.yaml", policies); err != nil {
		t.Error(err)
	}
}

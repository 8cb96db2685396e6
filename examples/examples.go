// Package examples carries the sample policies that `rlnode dev` starts with
// when it is given none.
package examples

import _ "embed"

// Policies is the text of policies.yaml.
//
//go:embed policies.yaml
var Policies []byte

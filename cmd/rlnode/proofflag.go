package main

import (
	"errors"

	"github.com/spf13/pflag"
)

// proofValue is a flag that names a file of certificates, keys or authorities. Only left
// out it may be empty: from a variable of a script that is not set, an empty name would
// silently mean that nothing is encrypted.
type proofValue struct{ path *string }

// proofFlag is StringVar for a proofValue, which is empty unless given.
func proofFlag(f *pflag.FlagSet, path *string, name, usage string) {
	f.Var(proofValue{path}, name, usage)
}

// Set is called for a flag, the environment and --config alike; each adds its name.
func (v proofValue) Set(path string) error {
	if path == "" {
		return errors.New("is given and empty: want the name of a file, or leave it out")
	}
	*v.path = path
	return nil
}

func (v proofValue) String() string {
	if v.path == nil { // a zero value, by which pflag knows defaults
		return ""
	}
	return *v.path
}

// Type is that of other texts, for help.
func (proofValue) Type() string { return "string" }

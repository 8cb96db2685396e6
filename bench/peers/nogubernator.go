//go:build nogubernator

package main

import (
	"context"
	"errors"

	"github.com/ringlimit/ringlimit/bench/load"
)

// gubernator's packages bring some two hundred others that take minutes to compile.
// With the tag nogubernator, which `make test` and `make lint` set, this program is
// built without them: it is checked, and measures the other contenders.
var errNoGubernator = errors.New("built with the tag nogubernator: build without it")

func startGubernator(context.Context, Setup) (System, error) { return nil, errNoGubernator }

func dialGubernator(*Job, *Traffic) (load.Target, func(), error) {
	return nil, nil, errNoGubernator
}

func daemon(context.Context, []string) error { return errNoGubernator }

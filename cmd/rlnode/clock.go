//go:build !testclock

package main

import "github.com/ringlimit/ringlimit/cluster"

// seams are what tests get between a node and the machine: nothing in this build.
func seams() cluster.Seams { return cluster.Seams{} }

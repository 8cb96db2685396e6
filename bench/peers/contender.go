package main

import (
	"fmt"
	"slices"
	"strings"
)

// The contenders, by name.
const (
	ours3     = "ringlimit"
	ours1     = "ringlimit-1"
	redis     = "redis"
	redisWait = "redis-wait"
	guber     = "gubernator"
)

// Contender is one system, asked in one way.
type Contender struct {
	Name   string
	Title  string
	System string // contenders of one system are measured against the same processes
	Wait   bool   // each call waits for one replica
}

// contenders are all, in the order of tables.
var contenders = []Contender{
	{Name: ours3, Title: "ringlimit, 3 groups", System: ours3},
	{Name: ours1, Title: "ringlimit, 1 group", System: ours1},
	{Name: redis, Title: "Redis", System: redis},
	{Name: redisWait, Title: "Redis + WAIT 1", System: redis, Wait: true},
	{Name: guber, Title: "gubernator", System: guber},
}

// contendersOf returns the named ones, all for an empty list.
func contendersOf(list string) ([]Contender, error) {
	if list == "" {
		return contenders, nil
	}
	var chosen []Contender
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(contenders, func(c Contender) bool { return c.Name == strings.TrimSpace(name) })
		if i < 0 {
			return nil, fmt.Errorf("no contender %q, there are %s", name, strings.Join(names(contenders, func(c Contender) string { return c.Name }), ", "))
		}
		chosen = append(chosen, contenders[i])
	}
	return chosen, nil
}

// systemsOf are the systems of contenders, each once, in order.
func systemsOf(list []Contender) []string {
	var systems []string
	for _, c := range list {
		if !slices.Contains(systems, c.System) {
			systems = append(systems, c.System)
		}
	}
	return systems
}

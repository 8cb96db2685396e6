package trial

import (
	"fmt"
	"os/exec"
	"slices"

	"github.com/ringlimit/ringlimit/bench/fleet"
	"github.com/ringlimit/ringlimit/bench/nemesis"
)

// newCrew tries what this machine can do, and notes in words what it cannot.
func newCrew(cfg Config) *crew {
	c := &crew{cfg: cfg, has: nemesis.Relays | nemesis.Cuts}
	try := func(n nemesis.Needs, why error, without string) {
		if why == nil {
			c.has |= n
		} else {
			c.note("%s: %v", without, why)
		}
	}
	if cfg.Loopback {
		c.note("no namespaces, as was asked for: nodes are plain processes on loopback with relays between them")
	} else {
		try(nemesis.Namespaces, fleet.CanIsolate(), "no namespaces, so nodes are plain processes on loopback with relays between them")
	}
	if c.has&nemesis.Namespaces != 0 {
		try(nemesis.Disk, fleet.CanMountDisks(cfg.Dir), "no small disks")
	}
	try(nemesis.Processor, fleet.CanThrottle(cfg.Dir), "no share of a processor")
	try(nemesis.TimeSpace, fleet.CanSetAhead(), "no clocks ahead")
	_, why := exec.LookPath("go")
	try(nemesis.Clock, why, "no bent clocks, which need a build of their own")
	return c
}

// note keeps for the report what could not be tried here, and tells who waits.
func (c *crew) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.notes = append(c.notes, text)
	fmt.Fprintln(c.cfg.Progress, "trial:", text)
}

// bears says whether a kind works here, on the ground that it needs.
func (c *crew) bears(k nemesis.Kind) bool { return c.carries(c.ground(k), []nemesis.Kind{k}) }

// usable returns those of some kinds that work here. One that does not leaves its
// place to its substitute, if it has one.
func (c *crew) usable(kinds []nemesis.Kind) (usable []nemesis.Kind) {
	in := func(list []nemesis.Kind, name string) bool {
		return slices.ContainsFunc(list, func(k nemesis.Kind) bool { return k.Name == name })
	}
	for _, k := range kinds {
		if c.bears(k) {
			usable = append(usable, k)
			continue
		}
		i := slices.IndexFunc(nemesis.Kinds, func(o nemesis.Kind) bool { return o.Name == k.Instead })
		if i < 0 || !c.bears(nemesis.Kinds[i]) || in(kinds, k.Instead) || in(usable, k.Instead) {
			c.note("%s is left out", k.Name)
			continue
		}
		c.note("%s takes the place of %s", k.Instead, k.Name)
		usable = append(usable, nemesis.Kinds[i])
	}
	return usable
}

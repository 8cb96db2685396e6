// Command capacity turns what was measured of ringlimit into the nodes, memory and
// network that a load needs, and says which of them decides. It is arithmetic and
// starts nothing: docs/capacity.md tells what it assumes, and has its tables from it.
//
//	go run ./bench/capacity -peak 150000 -keys 500e6 -days 30 [-o json]
//	go run ./bench/capacity -constants          # what it counts with, and from where
//	go run ./bench/capacity -simulate 200       # placement of 200 nodes, by the product's own planner
//	go run ./bench/capacity -page docs/capacity.md  # writes its tables anew
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// options are the command line.
type options struct {
	load      load
	shape     shape
	constants *constants
	sources   []source
	simulate  int
	origins   bool
	page      string
	output    string
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "capacity:", err)
		os.Exit(2)
	}
}

func parse(args []string, stderr io.Writer) (options, error) {
	o := options{load: defaultLoad(), shape: defaultShape()}
	o.constants, o.sources = measuredConstants()
	fs := flag.NewFlagSet("capacity", flag.ContinueOnError)
	fs.SetOutput(stderr)
	o.load.flags(fs)
	o.shape.flags(fs)
	for _, s := range o.sources {
		number(fs, s.value, s.flag, s.what+"; "+string(s.kind)+": "+s.from)
	}
	fs.IntVar(&o.simulate, "simulate", 0, "simulate the placement of so many `nodes`, one more and one less, with -slots")
	fs.BoolVar(&o.origins, "constants", false, "print what is counted with, and from where")
	fs.StringVar(&o.page, "page", "", "write the tables of this `file` anew")
	fs.StringVar(&o.output, "o", "text", "text or json")
	if err := fs.Parse(args); err != nil {
		return o, err
	}
	switch {
	case fs.NArg() > 0:
		return o, fmt.Errorf("%q: there are flags only", fs.Arg(0))
	case o.output != "text" && o.output != "json":
		return o, fmt.Errorf("-o %s: want text or json", o.output)
	}
	for _, s := range o.sources {
		if err := within(s.flag, *s.value, 0, 1e15); err != nil {
			return o, err
		}
	}
	return o, errors.Join(o.load.validate(), o.shape.validate())
}

func (l *load) flags(fs *flag.FlagSet) {
	number(fs, &l.Peak, "peak", "decisions a second at the peak")
	number(fs, &l.Headroom, "headroom", "that much more must fit, as a share")
	number(fs, &l.Admitted, "admitted", "share that is admitted, and so committed")
	number(fs, &l.Keys, "keys", "buckets that are not full, now")
	number(fs, &l.Growth, "growth", "of them a day, as a share")
	number(fs, &l.Days, "days", "ahead to size for")
	fs.DurationVar(&l.IdleExpiry, "idle-expiry", l.IdleExpiry, "until a bucket that nobody takes from is full, and dropped; 0: never")
	number(fs, &l.OwnIDs, "own-ids", "share of takes with an id of the caller's own")
	number(fs, &l.Policies, "policies", "how many")
	number(fs, &l.PolicyBytes, "policy-bytes", "of each in its file")
	number(fs, &l.Clients, "clients", "processes with the client library")
	number(fs, &l.Gathered, "gathered", "takes that share a message of a client")
}

func (s *shape) flags(fs *flag.FlagSet) {
	fs.IntVar(&s.Replicas, "replicas", s.Replicas, "of each group: 3, or 2 for comparison")
	fs.IntVar(&s.Slots, "slots", s.Slots, "of a cluster")
	fs.IntVar(&s.MaxNodes, "max-nodes", s.MaxNodes, "of a cluster; more load makes more clusters")
	number(fs, &s.Cores, "cores", "of a node")
	number(fs, &s.Memory, "memory", "bytes of a node")
	number(fs, &s.Network, "network", "bytes a second of a node, each way")
	number(fs, &s.Use, "use", "share of a node that may be used")
	fs.BoolVar(&s.Survive, "survive", s.Survive, "size for the loss of one node")
	number(fs, &s.UseGone, "use-gone", "share of cores and network that may be used then")
	number(fs, &s.MoveRate, "move-rate", "bytes a second of slots that leave a node, and of those that come to one, as rlnode's --move-rate")
	number(fs, &s.CatchRate, "catch-rate", "bytes a second of a snapshot to a fresh replica; a guess, nobody measured it yet")
}

// number is a flag for a float that prints large and small ones readably.
func number(fs *flag.FlagSet, at *float64, name, usage string) {
	fs.Func(name, usage+" (default "+strconv.FormatFloat(*at, 'g', -1, 64)+")", func(s string) error {
		v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
		if err == nil {
			*at = v
		}
		return err
	})
}

func run(o options, w io.Writer) error {
	switch {
	case o.page != "":
		return writePage(o.page)
	case o.origins:
		return show(o, w, o.constants, sourceTable(o.sources))
	case o.simulate > 0:
		r, err := simulate(o.simulate, o.shape.Slots)
		if err != nil {
			return err
		}
		return show(o, w, r, r.text())
	}
	a := size(o.load, o.shape, o.constants)
	return show(o, w, a, a.text())
}

func show(o options, w io.Writer, v any, text string) error {
	if o.output == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
	_, err := io.WriteString(w, text)
	return err
}

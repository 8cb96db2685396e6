package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/client"
)

// stroke is a fault at a number of seconds, that lasted so long for callers, and the
// steady load of its time: one request a second, the first of which waits until all is
// served.
func stroke(kind, way string, at int, outage time.Duration) (counted, []record) {
	from := time.Duration(at) * time.Second
	c := counted{injury: injury{kind: kind, way: way}, blow: blow{group: 1, struck: from, outage: outage}, from: from, to: from + 7*time.Second}
	var recs []record
	for i := range 7 {
		call := from + time.Duration(i)*time.Second
		r := record{call: call, ret: call + time.Millisecond, ans: client.Decision{Group: 1, Term: uint64(at + 2), Index: 1}}
		if i == 0 {
			r.ret = call + outage
		}
		recs = append(recs, r)
	}
	return c, recs
}

func TestSeriesIsCountedByFault(t *testing.T) {
	var all []counted
	var recs []record
	add := func(c counted, r []record) { all, recs = append(all, c), append(r, recs...) } // in any order
	add(stroke("kill", "", 0, 40*time.Millisecond))
	add(stroke("cut", "deaf", 7, 400*time.Millisecond))
	missed, calm := stroke("kill", "", 28, time.Millisecond) // somebody else led
	for i := range calm {
		calm[i].ans.Term = 23 // as after the fault before it
	}
	add(missed, calm)
	add(stroke("kill", "", 14, 60*time.Millisecond))
	add(stroke("cut", "unheard", 21, 1500*time.Millisecond))
	recs[3].err = errors.New("deadline")
	rows := tabulate(map[uint32]uint64{1: 1}, all, recs, []stall{{15100 * time.Millisecond, 15900 * time.Millisecond}})
	want := []row{
		{Kind: "kill", N: 3, Stalled: 1, P50: 60, P99: 60, Max: 60, Gap: 60, Requests: 19, Excused: 2, Share: 1, Changes: 2, Unmoved: 1},
		{Kind: "cut", N: 2, P50: 1500, P99: 1500, Max: 1500, Gap: 1500, Requests: 14, Share: 12. / 14, Errors: 1, Changes: 2},
		{Kind: "cut deaf", N: 1, P50: 400, P99: 400, Max: 400, Gap: 400, Requests: 7, Share: 1, Changes: 1},
		{Kind: "cut unheard", N: 1, P50: 1500, P99: 1500, Max: 1500, Gap: 1500, Requests: 7, Share: 5. / 7, Errors: 1, Changes: 1},
		{Kind: "all", N: 5, Stalled: 1, P50: 400, P99: 1500, Max: 1500, Gap: 1500, Requests: 33, Excused: 2, Share: 31. / 33, Errors: 1, Changes: 4, Unmoved: 1},
	}
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i := range want {
		if rows[i] != want[i] {
			t.Errorf("got %+v, want %+v", rows[i], want[i])
		}
	}
	var text bytes.Buffer
	if err := writeRows(&text, rows); err != nil || !strings.Contains(text.String(), "cut unheard") {
		t.Errorf("%v:\n%s", err, &text)
	}
}

func TestSeriesHoldsToItsPromises(t *testing.T) {
	good := row{Kind: "kill", N: 100, P50: 99, Share: 0.9995, Unmoved: 5}
	if broken := good.broken(); broken != nil {
		t.Errorf("nothing is broken: %q", broken)
	}
	for name, bad := range map[string]row{
		"slow":              {Kind: "kill", N: 100, P50: 101, Share: 1},
		"slow cut":          {Kind: "cut", N: 50, P50: 501, Share: 1},
		"late answers":      {Kind: "pause", N: 50, Share: 0.9985},
		"leaders untouched": {Kind: "pause", N: 50, Share: 1, Unmoved: 6},
	} {
		if len(bad.broken()) != 1 {
			t.Errorf("%s: %q", name, bad.broken())
		}
	}
}

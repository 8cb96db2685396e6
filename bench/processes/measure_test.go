package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestMedianTakesTheMiddleRun(t *testing.T) {
	rates := []float64{30, 10, 20}
	r, err := median(3, func() (row, error) {
		r := row{Result: result{Rate: rates[0]}}
		rates = rates[1:]
		return r, nil
	})
	if err != nil || r.Result.Rate != 20 {
		t.Errorf("%v, %v", r, err)
	}
}

func TestParseRefusesWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"-callers", "1,x"}, {"-callers", "0"}, {"-reps", "0"}, {"-o", "xml"}} {
		if _, err := parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%q were taken", args)
		}
	}
	o, err := parse(nil, &bytes.Buffer{})
	if err != nil || len(o.callers) != 5 {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestRowsAreWritten(t *testing.T) {
	var out bytes.Buffer
	if err := write(&out, "text", []row{{Callers: 16, Result: result{Rate: 14000, P50: 1000}}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "14000") || !strings.Contains(out.String(), "1.00") {
		t.Error(out.String())
	}
}

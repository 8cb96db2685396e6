package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ringlimit/ringlimit/policy"
)

// readAll reads a trace to its end; events are copies.
func readAll(text string) (events []Event, err error) {
	t := NewTrace("t.ndjson", strings.NewReader(text))
	for {
		e, err := t.Next()
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		c := *e
		c.Request.Principals = append([]policy.Principal(nil), e.Request.Principals...)
		c.Request.Attributes = append([]policy.Attribute(nil), e.Request.Attributes...)
		c.Request.Costs = append([]policy.PolicyCost(nil), e.Request.Costs...)
		events = append(events, c)
	}
}

func TestTraceIsReadInFull(t *testing.T) {
	got, err := readAll(`{"t":"59.01","cost":3,"request":{"tenant":"acme","route":"GET:/v1/items?x=1","principal_type":"api_key","principal_id":"k1"}}` + "\r\n" +
		"\n  \n" +
		` { "request" : { "tenant" : "\u00fc\"", "plan":"gold", "region":"eu" , "principals":[{"type":"user","id":"u"},{"id":"10.0.0.1","type":"ip"}], "attributes":{"a":"1","b":"2"}},"t":"59.010000000", "costs":{"p":0,"q":1000000000} } ` + "\n" +
		`{"t":"9223372036.854775807","request":{}}`)
	want := []Event{
		{T: "59.01", Time: 59_010_000_000, Request: policy.Request{Tenant: "acme", Route: "GET:/v1/items?x=1", Cost: 3, Principals: []policy.Principal{{Type: "api_key", ID: "k1"}}}},
		{T: "59.010000000", Time: 59_010_000_000, Request: policy.Request{
			Tenant: `ü"`, Plan: "gold", Region: "eu", Cost: 1,
			Principals: []policy.Principal{{Type: "user", ID: "u"}, {Type: "ip", ID: "10.0.0.1"}},
			Attributes: []policy.Attribute{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}},
			Costs:      []policy.PolicyCost{{Policy: "p"}, {Policy: "q", Cost: 1e9}},
		}},
		{T: "9223372036.854775807", Time: 1<<63 - 1, Request: policy.Request{Cost: 1}},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBadLinesAreNamed: file, line, column of the value, and what would be right.
func TestBadLinesAreNamed(t *testing.T) {
	good := `{"t":"1","request":{"tenant":"a"}}` + "\n\n"
	for bad, want := range map[string]string{
		`{"t":"1"`:                                                        `3:9: the line ends here, want a comma or }`,
		`{"t":"1","request":{"tenant":}}`:                                 `3:30: want a string`,
		`{"t":"1" "request":{}}`:                                          `3:10: want a comma or }`,
		`{"t":"1","request":{}`:                                           `3:22: the line ends here, want a comma or }`,
		`[]`:                                                              `3:1: want an object`,
		`hello`:                                                           `3:1: want an object`,
		`{"t":"1","request":{}} x`:                                        `3:24: more after the object, want one object a line`,
		`{"t":"1","request":{}}{}`:                                        `3:23: more after the object`,
		`{"request":{}}`:                                                  `3:1: no t, want a time such as "59.01"`,
		`{"t":"1"}`:                                                       `3:1: no request, want an object such as {"tenant":"acme"}`,
		`{"t":59.01,"request":{}}`:                                        `3:6: want a decimal string of seconds such as "59.01"`,
		`{"t":"","request":{}}`:                                           `3:1: no t`,
		`{"t":"1e3","request":{}}`:                                        `3:6: "1e3" is no time: want seconds as a decimal number`,
		`{"t":"-1","request":{}}`:                                         `3:6: "-1" is no time`,
		`{"t":"1.","request":{}}`:                                         `3:6: "1." is no time`,
		`{"t":".5","request":{}}`:                                         `3:6: ".5" is no time`,
		`{"t":"1.0000000001","request":{}}`:                               `3:6: "1.0000000001" is finer than a nanosecond`,
		`{"t":"9223372036.854775808","request":{}}`:                       `3:6: "9223372036.854775808" is too large`,
		`{"t":"99999999999999999999","request":{}}`:                       `3:6: "99999999999999999999" is too large`,
		`{"t":"0.999999999","request":{}}`:                                `3:6: "0.999999999" is before "1" of an earlier line; times must not decrease`,
		`{"t":"1","cost":-1,"request":{}}`:                                `3:17: "-1", want a whole number, 0 to 1000000000`,
		`{"t":"1","cost":1.5,"request":{}}`:                               `3:17: "1.5", want a whole number`,
		`{"t":"1","cost":"1","request":{}}`:                               `3:17: "", want a whole number`,
		`{"t":"1","cost":1000000001,"request":{}}`:                        `3:17: "1000000001", want a whole number`,
		`{"t":"1","costs":{"p":1000000001},"request":{}}`:                 `3:23: "1000000001", want a whole number`,
		`{"t":"1","tenant":"a"}`:                                          `3:10: unknown field "tenant", want t, cost, costs or request`,
		`{"t":"1","cost":01,"request":{}}`:                                `3:17: "01", want a whole number`,
		`{"t":"1","cost":+1,"request":{}}`:                                `3:17: "+1", want a whole number`,
		`{"t":"1",}`:                                                      `3:10: want a name in quotes`,
		`{"t" "1"}`:                                                       `3:6: want a colon`,
		`{"t":"1","request":{"tenant":"\ud8zz"}}`:                         `3:30: not a JSON string`,
		"{\"t\":\"1\",\"request\":{\"tenant\":\"a\tb\"}}":                 `3:32: control character`,
		"{\"t\":\"1\",\"request\":{\"tenant\":\"\xff\"}}":                 `3:30: tenant: not UTF-8`,
		`{"t":"1","t":"2","request":{}}`:                                  `3:10: "t" is given twice`,
		`{"t":"1","request":7}`:                                           `3:20: want an object`,
		`{"t":"1","request":{"user":"u"}}`:                                `3:21: unknown field "user", want tenant, route,`,
		`{"t":"1","request":{"tenant":7}}`:                                `3:30: want a string`,
		`{"t":"1","request":{"principal_type":"user"}}`:                   `3:20: principal_type and principal_id go together`,
		`{"t":"1","request":{"principals":{}}}`:                           `3:34: want a list of principals`,
		`{"t":"1","request":{"principals":[{"type":"user","name":"x"}]}}`: `3:50: unknown field "name", want type and id`,
		`{"t":"1","request":{"principals":[{"type":"user"}]}}`:            `3:34: principals[0].id: empty, want an id`,
		`{"t":"1","request":{"route":"items"}}`:                           `3:29: route: "items", want METHOD:/path`,
		`{"t":"1","request":{"plan":"x","tenant":"` + strings.Repeat("x", 65): `3:107: the line ends amid a string`,
		`{"t":"1","request":{"tenant":"` + strings.Repeat("x", 65) + `"}}`:    `3:30: tenant: 65 bytes, want at most 64`,
		`{"t":"1","request":{"attributes":{"tenant":"x"}}}`:                   `3:34: attributes[0].name: `,
	} {
		events, err := readAll(good + bad + "\n" + good)
		var at *LineError
		if !errors.As(err, &at) || len(events) != 1 {
			t.Errorf("%s: %d events, %v", bad, len(events), err)
			continue
		}
		if got := err.Error(); !strings.HasPrefix(got, "t.ndjson:"+want) {
			t.Errorf("%s\n got %s\nwant t.ndjson:%s…", bad, got, want)
		}
	}
}

func TestLongLines(t *testing.T) {
	line := func(n int) string {
		return fmt.Sprintf(`{"t":"1","request":{}%s}`, strings.Repeat(" ", n)) + "\n"
	}
	if events, err := readAll(line(200_000) + line(0) + line(900_000)); err != nil || len(events) != 3 {
		t.Errorf("%d events, %v", len(events), err)
	}
	var at *LineError
	if _, err := readAll(line(0) + line(2_000_000)); !errors.As(err, &at) || at.Line != 2 || !strings.Contains(at.Reason, "longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}

// FuzzTrace: no input panics, and what is read is JSON, in order and valid.
func FuzzTrace(f *testing.F) {
	f.Add(`{"t":"59.01","cost":1,"costs":{"p":2},"request":{"tenant":"acme","principal_type":"a","principal_id":"b"}}`)
	f.Add("{\"t\":\"1\",\"request\":{\"principals\":[{\"type\":\"user\",\"id\":\"\\ud800\"}],\"attributes\":{\"a\":\"\xff\"}}}\n{")
	f.Fuzz(func(t *testing.T, text string) {
		if events, err := readAll(strings.ReplaceAll(text, "\n", "")); err == nil && len(events) > 0 && !json.Valid([]byte(strings.ReplaceAll(text, "\n", ""))) {
			t.Fatalf("%q is read as %+v", text, events)
		}
		events, err := readAll(text)
		last := int64(0)
		for i := range events {
			e := &events[i]
			if e.Time < last || e.Request.Validate() != nil {
				t.Fatalf("event %d: %+v", i, e)
			}
			last = e.Time
		}
		var at *LineError
		if err != nil && (!errors.As(err, &at) || at.Line < 1 || at.Column < 1) {
			t.Fatalf("error %v", err)
		}
	})
}

package rest_test

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const paymentsPath = "/v1/policies/payments-standard"

func TestAPolicyIsWhatAFileSays(t *testing.T) {
	w := newFake().do("GET", paymentsPath, "")
	want := `{"id":"payments-standard","version":812,"match":{},"scope":["api_key"],"algorithm":"token_bucket","amount":20,"window":"1s","burst":40}` + "\n"
	if w.Body.String() != want || w.Header().Get("ETag") != `"policy-version-812"` {
		t.Errorf("got %s want %s", w.Body, want)
	}
	// What a GET gave can be put back as it is.
	f := newFake()
	if w := f.do("PUT", paymentsPath, w.Body.String(), `If-Match: "policy-version-812"`, "From: ann"); w.Code != 200 || w.Header().Get("ETag") != `"policy-version-813"` {
		t.Errorf("put back: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if want := strings.Replace(strings.TrimSpace(want), `"version":812,`, "", 1) + " by ann"; f.changed != want {
		t.Errorf("put\n%s want\n%s", f.changed, want)
	}
	if f.do("PUT", paymentsPath, `{"scope":"tenant","rate_per_second":20}`); !strings.HasSuffix(f.changed, `"amount":20,"window":"1s","burst":20} by http 192.0.2.1`) {
		t.Errorf("put %s", f.changed)
	}
}

func TestConditionsOfChanges(t *testing.T) {
	const body = `{"scope":"tenant","rate_per_second":20}`
	for _, c := range []struct {
		path   string
		header string
		status int
	}{
		{paymentsPath, "", 200},
		{paymentsPath, `If-Match: "policy-version-812"`, 200},
		{paymentsPath, `If-Match:  "policy-version-812" `, 200},
		{paymentsPath, `If-Match: "policy-version-811"`, 412},
		{paymentsPath, `If-Match: W/"policy-version-812"`, 412},
		{paymentsPath, `If-Match: "policy-version-0812"`, 412},
		{paymentsPath, `If-Match: "812"`, 412},
		{paymentsPath, `If-Match: policy-version-812`, 412},
		{paymentsPath, `If-Match: "policy-version-99999999999999999999"`, 412},
		{paymentsPath, `If-Match: *`, 400},
		{paymentsPath, `If-Match: "policy-version-812", "policy-version-811"`, 400},
		{paymentsPath, `If-None-Match: *`, 412},
		{paymentsPath, `If-None-Match: "policy-version-812"`, 400},
		{"/v1/policies/new", `If-None-Match: *`, 200},
		{"/v1/policies/new", `If-Match: "policy-version-812"`, 412},
	} {
		var headers []string
		if c.header != "" {
			headers = []string{c.header}
		}
		w := newFake().do("PUT", c.path, body, headers...)
		if w.Code != c.status {
			t.Errorf("PUT %s %s: %d %s", c.path, c.header, w.Code, w.Body)
		}
		if w.Code == 412 && problemOf(t, w).Title == "" {
			t.Errorf("412: %s", w.Body)
		}
		if c.status == 412 && c.path == paymentsPath && strings.HasPrefix(c.header, "If-Match") {
			if w := newFake().do("DELETE", c.path, "", headers...); w.Code != 412 {
				t.Errorf("DELETE %s %s: %d %s", c.path, c.header, w.Code, w.Body)
			}
		}
	}
	if w := newFake().do("DELETE", paymentsPath, "", "If-None-Match: *"); w.Code != 400 {
		t.Errorf("DELETE with If-None-Match: %d", w.Code)
	}
	both := []string{`If-Match: "policy-version-812"`, "If-None-Match: *"}
	if w := newFake().do("PUT", paymentsPath, body, both...); w.Code != 400 {
		t.Errorf("both conditions: %d", w.Code)
	}
}

func TestBadPoliciesSayWhere(t *testing.T) {
	for body, want := range map[string][2]string{
		`{}`:                                       {"scope", "missing"},
		`{"scope":"tenant"}`:                       {"amount", "missing, want amount and window"},
		`{"id":"other","scope":"tenant"}`:          {"id", `want "payments-standard" as in the path`},
		`{"id":7}`:                                 {"id", "is a number"},
		`{"scope":"tenant","scope":"ip"}`:          {"scope", "given twice"},
		`{"scope":"tenant","rate":20}`:             {"rate", "unknown key, want id"},
		`{"scope":"tenant","rate_per_second":1.5}`: {"rate_per_second", ""},
		`{"scope":"tenant","rate_per_second":20,"mode":"on"}`:                             {"mode", "want enforce, shadow or disabled"},
		`{"scope":"tenant","amount":1,"window":"1h","algorithm":"sliding_log","burst":2}`: {"burst", "want none"},
		`{"scope":"tenant","amount":1,"window":"1d"}`:                                     {"window", ""},
		`{"scope":"tenant","amount":1,"window":"1s","match":{"a":{"b":"c"}}}`:             {"match.a", ""},
		`{"scope":"tenant","amount":1,"window":"1s","match":{"a":"1","a":"2"}}`:           {"match.a", "given twice"},
		`{"scope":"tenant","amount":1,"window":"1s","on_unavailable":{"mode":"shut"}}`:    {"on_unavailable.mode", "want local, closed or open"},
		`{"scope":["principal_type"],"amount":1,"window":"1s"}`:                           {"scope[0]", "want the type of a principal"},
		`{"scope":"tenant","amount":2000000000,"window":"1s"}`:                            {"amount", ""},
		`{"scope":[[[[[[[[[[[]]]]]]]]]]]}`:                                                {"", "at most 8 deep"},
		`{"scope":"tenant"} - x`:                                                          {"", "want nothing more"},
		`scope: tenant`:                                                                   {"", "want an object"},
		`{"version":-1}`:                                                                  {"version", "want a whole number"},
	} {
		f := newFake()
		w := f.do("PUT", paymentsPath, body)
		p := problemOf(t, w)
		if w.Code != 400 || f.changed != "" || !strings.HasPrefix(p.Field, want[0]) || !strings.Contains(p.Detail, want[1]) || p.Detail == "" {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if p := problemOf(t, newFake().do("PUT", paymentsPath, `{"scope":"tenant","rate_per_second":20}`, "From: a\tb")); p.Field != "From" {
		t.Errorf("From: %+v", p)
	}
	if w := newFake().do("PUT", "/v1/policies/"+strings.Repeat("x", 129), `{"scope":"tenant","rate_per_second":20}`); w.Code != 400 {
		t.Errorf("a long id: %d", w.Code)
	}
}

// TestCostsByClassAreForTheClusterToJudge: what classes there are, the body cannot say.
func TestCostsByClassAreForTheClusterToJudge(t *testing.T) {
	f := newFake()
	w := f.do("PUT", paymentsPath, `{"match":{"route_class":"export"},"scope":["tenant"],"rate_per_second":20,"cost":{"export":10,"default":1}}`)
	if w.Code != 200 || !strings.Contains(f.changed, `"cost":{"default":1,"export":10}`) {
		t.Errorf("%d %s, put %s", w.Code, w.Body, f.changed)
	}
}

func TestOverrides(t *testing.T) {
	f := newFake()
	if w := f.do("PUT", "/v1/overrides", override); w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if o := f.override; o.Policy != "payments-standard" || o.Key.Get("api_key") != "k" || *o.Amount != 50 || *o.Burst != 60 || o.Until != time.Date(2100, 1, 2, 15, 4, 5, 0, time.UTC).UnixNano() {
		t.Errorf("set %+v", o)
	}
	if w := f.do("DELETE", "/v1/overrides?policy=a%2Fb&key=tenant=acme&key=ip=x%3Dy", ""); w.Code != 200 || f.override.Policy != "a/b" || f.override.Key.Get("ip") != "x=y" {
		t.Errorf("cleared %+v: %d %s", f.override, w.Code, w.Body)
	}
	for body, field := range map[string]string{
		`{}`: "policy", `{"policy":"p"}`: "key", `{"policy":"p","key":{"tenant":"a"}}`: "until", `{"until":"tomorrow"}`: "until",
		`{"until":"2300-01-01T00:00:00Z"}`: "until", `{"amount":"1"}`: "amount", `{"scale":2}`: "scale", `{"key":{"tenant":1}}`: "key.tenant",
	} {
		if p := problemOf(t, newFake().do("PUT", "/v1/overrides", body)); p.Status != 400 || p.Field != field {
			t.Errorf("%s: %+v", body, p)
		}
	}
	for query, field := range map[string]string{
		"?policy=p": "policy", "?key=tenant=a": "policy", "?policy=p&key=tenant": "key", "?policy=p&key=t=a&key=t=b": "key",
		"?policy=p&policy=q&key=t=a": "policy", "?policy=p&key=t=a&x=y": `"x"`, "?policy=%zz": "", "?policy=p&key=a;b": "",
	} {
		if p := problemOf(t, newFake().do("DELETE", "/v1/overrides"+query, "")); p.Status != 400 || p.Field != field {
			t.Errorf("%s: %+v", query, p)
		}
	}
}

// TestFewListsAtOnce: each of 100,000 policies is tens of MB.
func TestFewListsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.hold = make(chan struct{})
		h := f.handler(io.Discard)
		var held []*httptest.ResponseRecorder
		for range 2 {
			w := httptest.NewRecorder()
			held = append(held, w)
			go h.ServeHTTP(w, request("GET", "/v1/policies", ""))
		}
		synctest.Wait()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, request("GET", "/v1/policies", ""))
		if p := problemOf(t, w); w.Code != 503 || p.Code != "BUSY" {
			t.Errorf("a third: %d %s", w.Code, w.Body)
		}
		close(f.hold)
		synctest.Wait()
		for _, w := range held {
			if w.Code != 200 {
				t.Errorf("held: %d", w.Code)
			}
		}
	})
}

package policy

import (
	"strings"
	"testing"
)

func TestSlipsOfKnownNamesAreTold(t *testing.T) {
	for name, want := range map[string]string{
		"rout": "route", "ruote": "route", "Route": "route", "tenent": "tenant", "tennant": "tenant", "route_clss": "route_class",
		"apikey": "api_key", "api-key": "api_key", "API_KEY": "api_key", "routeclass": "route_class", "regoin": "region",
		"oauthtoken": "oauth_token", "plans": "plan", "usr": "user", "IP": "ip", "serivce": "service",
		"route": "", "user": "", "ip": "", "zip": "", "id": "", "role": "", "team": "", "customer": "", "device": "",
		"partner": "", "product": "", "account": "", "": "",
	} {
		if got := likeKnown(name); got != want {
			t.Errorf("%q is like %q, want %q", name, got, want)
		}
	}
}

func TestSlipsHaveTheirPlace(t *testing.T) {
	const file = `
policies:
  - id: a
    match:
      tier: gold
      rout: "GET:/x"
    scope: [tenant, api-key]
    amount: 1
    window: 1s
  - {id: b, scope: [tenant], amount: 1, window: 1s}
`
	for _, quick := range []bool{true, false} {
		_, slips, err := parseWarn("f.yaml", []byte(file), quick)
		if err != nil || len(slips) != 2 {
			t.Fatal(slips, err)
		}
		for i, want := range []string{
			`f.yaml:6:7: policies[0].match.rout: "rout" is a free attribute, which no request has unless its caller names it so; is route meant?`,
			`f.yaml:7:5: policies[0].scope[1]: "api-key" is a free attribute, which no request has unless its caller names it so; is api_key meant?`,
		} {
			// The place of an element of a list is that of the list, or its own.
			got := slips[i].Error()
			if got != want && (i == 0 || !strings.HasPrefix(got, "f.yaml:7:") || !strings.HasSuffix(got, want[len("f.yaml:7:5"):])) {
				t.Errorf("%s\nwant %s", got, want)
			}
		}
	}
	many := strings.ReplaceAll(string(large(1000)), "tenant: tenant-", "tenent: tenant-")
	if _, slips, err := ParseWarn("f.yaml", []byte(many)); err != nil || len(slips) != maxSlips {
		t.Errorf("%d slips, %v", len(slips), err)
	}
}

func TestRoutesThatNoRequestHasAreRefused(t *testing.T) {
	for value, want := range map[string]string{
		"GET:/v1/*": "", "*": "", "P*": "", "GET:*": "", "M-SEARCH:/x": "", "GET:/": "", "GET:/a:b": "",
		"/v1/payments": `"GET:/v1/payments"`, "/v1/*": `"GET:/v1/*"`, "v1": `"GET:/v1"`, "get:/x": `"GET:/x"`, "GET /x": `"GET:/x"`,
		"GET:x": `"GET:/x"`, ":/x": `"GET:/:/x"`, "GET:": `"GET:/"`, "G T*": `"G:/T*"`, "post:x*": `"POST:/x*"`,
	} {
		err := checkNewRoute(value)
		if (err == nil) != (want == "") || err != nil && !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", value, err, want)
		}
		if want != "" && checkNewRoute(strings.Trim(want, `"`)) != nil {
			t.Errorf("%s: what is proposed instead is refused too", want)
		}
	}
	for file, want := range map[string]string{
		"policies:\n  - {id: a, amount: 1, window: 1s, scope: [],\n     match: {route: /v1/payments}}\n": `f.yaml:3:14: policies[0].match.route: "/v1/payments", want METHOD:/path as requests have it, such as "GET:/v1/payments"`,
		"route_classes:\n  - {name: x, routes: [\"GET:/a\", \"/b\"]}\npolicies: []\n":                    `route_classes[0].routes[1]: "/b", want METHOD:/path as requests have it, such as "GET:/b"`,
	} {
		if _, err := Parse("f.yaml", []byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	// One that is in force already stays in force.
	if _, err := Decode((&Set{Home: []string{"tenant"}, Policies: []*Policy{{ID: "a", Match: On("route", "/x"), Limit: tokens(1, 1, 1e9)}}}).Encode()); err != nil {
		t.Error(err)
	}
}

func TestCheckPutJudgesWhatWillStandTogether(t *testing.T) {
	in := func(id, family, plan string) *Policy {
		return &Policy{ID: id, Family: family, Match: On("plan", plan), Limit: tokens(1, 1, 1e9)}
	}
	set := func(p ...*Policy) *Set { return &Set{Home: []string{"tenant"}, Policies: p} }
	old := set(in("a", "f", "x"), in("b", "f", "y"))
	for name, c := range map[string]struct {
		file  *Set
		prune bool
		ok    bool
	}{
		"another match":            {set(in("c", "f", "z")), false, true},
		"that of one that stays":   {set(in("c", "f", "x")), false, false},
		"that of one that goes":    {set(in("c", "f", "x")), true, true},
		"that of one that changes": {set(in("a", "f", "w"), in("c", "f", "x")), false, true},
		"a family of its own":      {set(in("c", "", "x")), false, true},
	} {
		if err := CheckPut(old, c.file, c.prune); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

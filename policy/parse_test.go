package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ringlimit/ringlimit/bucket"
)

const sample = `# what a platform team might write
home: [tenant]
no_match: deny
policies:
  - id: payments-standard
    match: {route: "POST:/v1/payments", plan: standard}
    scope: [tenant, api_key]
    algorithm: token_bucket
    amount: 20
    window: 1s
    burst: 40
  - id: all
    match: {}
    scope: tenant
    algorithm: token_bucket
    limit_count: 1000
    window_seconds: 60
  - id: year
    match:
      route: GET:/v1/*
      account: 007
    scope:
      - tenant
    rate_per_second: 20
  - {id: closed, scope: [tenant, user], amount: 0, window: 8760h}
`

func tokens(amount, burst uint64, window time.Duration) bucket.Limit {
	return bucket.Limit{Algorithm: bucket.TokenBucket, Amount: amount, Burst: burst, Window: int64(window)}
}

func TestParse(t *testing.T) {
	got, err := Parse("policies.yaml", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	want := &Set{
		Home: []string{"tenant"}, NoMatch: Deny, Omitted: []string{"route_classes"},
		Policies: []*Policy{
			{ID: "all", Match: Match{}, Scope: []string{"tenant"}, Limit: tokens(1000, 1000, time.Minute)},
			{ID: "closed", Match: Match{}, Scope: []string{"tenant", "user"}, Limit: tokens(0, 0, 8760*time.Hour)},
			{
				ID: "payments-standard", Match: On("route", "POST:/v1/payments", "plan", "standard"),
				Scope: []string{"tenant", "api_key"}, Limit: tokens(20, 40, time.Second),
			},
			{
				ID: "year", Match: On("route", "GET:/v1/*", "account", "007"),
				Scope: []string{"tenant"}, Limit: tokens(20, 20, time.Second),
			},
		},
	}
	for i, line := range []string{"12", "25", "5", "18"} {
		want.Policies[i].Source = "policies.yaml:" + line
		want.Policies[i] = want.Policies[i].normal()
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestDefaultsOfAFile(t *testing.T) {
	got, err := Parse("f", []byte("policies: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Set{Home: []string{"tenant"}, Policies: []*Policy{}, Omitted: []string{"home", "no_match", "route_classes"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// with returns a file whose second policy has some lines changed: "key: value"
// sets, "-key" leaves out.
func with(changes ...string) string {
	lines := []string{"id: b", "match: {}", "scope: [tenant]", "algorithm: token_bucket", "amount: 10", "window: 1s"}
	for _, c := range changes {
		key, _, _ := strings.Cut(strings.TrimPrefix(c, "-"), ":")
		kept := lines[:0:0]
		for _, l := range lines {
			if !strings.HasPrefix(l, key+":") {
				kept = append(kept, l)
			}
		}
		if lines = kept; c[0] != '-' {
			lines = append(lines, c)
		}
	}
	return "policies:\n  - {id: a, scope: [tenant], amount: 1, window: 1s}\n  - " + strings.Join(lines, "\n    ") + "\n"
}

func TestBadFilesNameLineFieldAndReason(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"empty":               {"", "f.yaml: empty, want the key policies"},
		"comment only":        {"# nothing\n", "f.yaml: empty, want the key policies"},
		"a list":              {"- a\n", `f.yaml:1:1: a list, want keys and values`},
		"no policies":         {"home: [tenant]\n", "policies: missing, want a list"},
		"unknown top":         {"polices: []\n", "f.yaml:1:1: polices: unknown key, want home, no_match, route_classes or policies"},
		"no_match":            {"no_match: maybe\npolicies: []\n", `f.yaml:1:1: no_match: "maybe", want allow or deny`},
		"home empty":          {"home: []\npolicies: []\n", "f.yaml:1:1: home: empty, want at least one name"},
		"home twice":          {"home: [tenant, tenant]\npolicies: []\n", `f.yaml:1:16: home[1]: a second "tenant"`},
		"home class":          {"home: [route_class]\npolicies: []\n", "f.yaml:1:8: home[0]: route_class, want what callers know by themselves"},
		"key twice":           {"policies: []\npolicies: []\n", "f.yaml:2:1: "},
		"two documents":       {"policies: []\n---\npolicies: []\n", "a second document"},
		"tab":                 {"policies:\n\t- id: a\n", "f.yaml:2:1: "},
		"bracket":             {"policies: [\n", "f.yaml:1:"},
		"anchor":              {"home: &h [tenant]\npolicies: []\n", "an anchor, alias or merge key, want a list"},
		"alias":               {"home: *h\npolicies: []\n", "f.yaml:1:"},
		"policies no list":    {"policies: {a: b}\n", "policies: a mapping, want a list"},
		"another file":        {strings.Repeat("root secret ", 20) + "end\n", `f.yaml:1:1: "root secret root secret root secret root secret root secret "…, want keys and values`},
		"policy no map":       {"policies: [7]\n", `f.yaml:1:12: policies[0]: "7", want keys and values`},
		"unknown":             {with("ammount: 5"), "f.yaml:9:5: policies[1].ammount: unknown key, want id,"},
		"no id":               {with("-id"), "f.yaml:3:5: policies[1].id: missing"},
		"same id":             {with("id: a"), `f.yaml:8:5: policies[1].id: "a" is the id of policies[0] too`},
		"id not ASCII":        {with("id: é"), `policies[1].id: "é", want printable ASCII`},
		"id long":             {with("id: " + strings.Repeat("x", 129)), "policies[1].id: 129 bytes, want at most 128"},
		"no scope":            {with("-scope"), "f.yaml:3:5: policies[1].scope: missing"},
		"scope class":         {with("scope: [tenant, route_class]"), "f.yaml:8:21: policies[1].scope[1]: route_class, want route_classes to be given: no request has one"},
		"scope short":         {with("scope: [principal_id]"), `policies[1].scope[0]: "principal_id", want the type of a principal, such as user, ip or api_key`},
		"scope not ASCII":     {with("scope: [größe]"), `f.yaml:8:13: policies[1].scope[0]: "größe", want printable ASCII`},
		"scope twice":         {with("scope: [tenant, tenant]"), `f.yaml:8:21: policies[1].scope[1]: a second "tenant"`},
		"scope nothing":       {with("scope:"), "f.yaml:8:5: policies[1].scope: nothing, want a list"},
		"scope of maps":       {with("scope: [{a: b}]"), "policies[1].scope[0]: a mapping, want a text"},
		"algorithm":           {with("algorithm: leaky"), `f.yaml:8:5: policies[1].algorithm: "leaky", want token_bucket, leaky_bucket, fixed_window, sliding_window, sliding_log or concurrency`},
		"amount a text":       {with("amount: many"), `policies[1].amount: "many", want a whole number`},
		"amount quoted":       {with(`amount: "5"`), `policies[1].amount: "5", want a whole number`},
		"amount part":         {with("amount: 1.5"), `policies[1].amount: "1.5", want a whole number`},
		"amount minus":        {with("amount: -1"), `policies[1].amount: "-1", want a whole number`},
		"amount large":        {with("amount: 1000000001"), "f.yaml:8:5: policies[1].amount: 1000000001, want 0 … 1000000000"},
		"amount huge":         {with("amount: 99999999999999999999999"), "policies[1].amount: "},
		"rate large":          {with("-amount", "-window", "rate_per_second: 1000000001"), "policies[1].rate_per_second: 1000000001, want 0 …"},
		"no amount":           {with("-amount"), "f.yaml:3:5: policies[1].amount: missing, want amount and window,"},
		"neither":             {with("-amount", "-window"), "policies[1].amount: missing, want amount and window,"},
		"no window":           {with("-window"), "policies[1].window: missing"},
		"window a number":     {with("window: 60"), `policies[1].window: "60", want a duration such as`},
		"window spaced":       {with("window: 1 s"), `policies[1].window: "1 s", want a duration`},
		"window short":        {with("window: 999us"), "f.yaml:8:5: policies[1].window: 999µs, want 1ms … 8784h0m0s"},
		"window long":         {with("window: 8785h"), "policies[1].window: 8785h0m0s, want 1ms … 8784h0m0s"},
		"window minus":        {with("window: -1s"), "policies[1].window: -1s, want 1ms …"},
		"seconds large":       {with("-amount", "-window", "limit_count: 1", "window_seconds: 18446744073709551615"), "policies[1].window_seconds: 1193046h28m16s, want"},
		"seconds alone":       {with("-amount", "-window", "window_seconds: 5"), "policies[1].limit_count: missing"},
		"two forms":           {with("rate_per_second: 5"), "f.yaml:9:5: policies[1].rate_per_second: given together with amount"},
		"mixed forms":         {with("-window", "window_seconds: 5"), "policies[1].window_seconds: given together with amount"},
		"burst 0":             {with("burst: 0"), "f.yaml:9:5: policies[1].burst: 0, want 1 … 1000000000"},
		"burst large":         {with("burst: 1000000001"), "policies[1].burst: 1000000001, want"},
		"match a list":        {with("match: [a]"), "policies[1].match: a list, want keys and values"},
		"match empty value":   {with(`match: {plan: ""}`), "f.yaml:8:13: policies[1].match.plan: empty, want a value"},
		"match no value":      {with("match: {plan: }"), "policies[1].match.plan: nothing, want a text"},
		"match star inside":   {with(`match: {route: "GET:/a/*/b"}`), `policies[1].match.route: "GET:/a/*/b", want a * only at the end`},
		"match class":         {with("match: {route_class: x}"), `f.yaml:8:13: policies[1].match.route_class: "x", want route_classes to name it`},
		"match not ASCII":     {with("match: {größe: x}"), `f.yaml:8:13: policies[1].match.größe: "größe", want printable ASCII`},
		"family not ASCII":    {with("family: é"), `f.yaml:9:5: policies[1].family: "é", want printable ASCII`},
		"family same match":   {with("family: a"), `f.yaml:4:5: policies[1].match: {}, the same as that of a, which is of the family a too; want matches of which one is more specific`},
		"burst of a window":   {with("algorithm: fixed_window", "burst: 10"), "f.yaml:9:5: policies[1].burst: 10, want none: fixed_window has no burst, its capacity is the amount"},
		"burst of permits":    {with("algorithm: concurrency", "burst: 0"), "policies[1].burst: 0, want none: concurrency has no burst"},
		"permits no window":   {with("algorithm: concurrency", "-window"), "policies[1].window: missing"},
		"cost 0":              {with("cost: 0"), "f.yaml:9:5: policies[1].cost: 0, want 1 … 1000000000"},
		"cost large":          {with("cost: 1000000001"), "policies[1].cost: 1000000001, want 1 … 1000000000"},
		"cost a text":         {with("cost: much"), `policies[1].cost: "much", want a whole number`},
		"cost of no class":    {with("cost: {export: 3}"), `f.yaml:9:12: policies[1].cost.export: "export", want route_classes to name it or default`},
		"cost of class 0":     {with("cost: {default: 0}"), `policies[1].cost.default: 0, want 1 … 1000000000`},
		"mode":                {with("mode: on"), `f.yaml:9:5: policies[1].mode: "on", want enforce, shadow or disabled`},
		"consistency":         {with("consistency: weak"), `policies[1].consistency: "weak", want strict or leased`},
		"leased log":          {with("algorithm: sliding_log", "consistency: leased"), `f.yaml:9:5: policies[1].consistency: leased, want strict for sliding_log: only tokens of token_bucket and fixed_window`},
		"leased permits":      {with("algorithm: concurrency", "consistency: leased"), `policies[1].consistency: leased, want strict for concurrency`},
		"state loss":          {with("on_state_loss: half"), `policies[1].on_state_loss: "half", want empty, salvage or full`},
		"unavailable word":    {with("on_unavailable: deny"), `f.yaml:9:5: policies[1].on_unavailable: "deny", want local, closed or open`},
		"unavailable key":     {with("on_unavailable: {made: local}"), "f.yaml:9:22: policies[1].on_unavailable.made: unknown key, want mode, after, for or then"},
		"unavailable after":   {with("on_unavailable: {mode: local, after: 0s}"), "f.yaml:9:35: policies[1].on_unavailable.after: 0s, want 1ms … 1h0m0s or deadline"},
		"after long":          {with("on_unavailable: {after: 61m}"), "policies[1].on_unavailable.after: 1h1m0s, want 1ms … 1h0m0s or deadline"},
		"after soon":          {with("on_unavailable: {after: soon}"), `policies[1].on_unavailable.after: "soon", want a duration`},
		"for closed":          {with("on_unavailable: {mode: closed, for: 2m}"), "policies[1].on_unavailable.for: given with mode closed, want it with mode open only"},
		"then open":           {with("on_unavailable: {mode: open, then: open}"), "policies[1].on_unavailable.then: open, want local or closed"},
		"classes no list":     {"route_classes: {a: b}\npolicies: []\n", "f.yaml:1:1: route_classes: a mapping, want a list"},
		"class key":           {"route_classes:\n  - {name: a, route: b}\npolicies: []\n", "f.yaml:2:15: route_classes[0].route: unknown key, want name or routes"},
		"class name":          {"route_classes:\n  - {routes: [b]}\npolicies: []\n", "f.yaml:2:6: route_classes[0].name: \"\", want 1 … 128 bytes"},
		"class default":       {"route_classes: [{name: default, routes: [b]}]\npolicies: []\n", "route_classes[0].name: \"default\", want another name"},
		"class twice":         {"route_classes:\n  - {name: a, routes: [b]}\n  - {name: a, routes: [b]}\npolicies: []\n", "f.yaml:3:6: route_classes[1].name: \"a\" is the name of route_classes[0] too"},
		"class no routes":     {"route_classes: [{name: a}]\npolicies: []\n", "route_classes[0].routes: 0 of them, want 1 … 256"},
		"class route star":    {"route_classes: [{name: a, routes: [\"GET:/*/b\"]}]\npolicies: []\n", "route_classes[0].routes[0]: \"GET:/*/b\", want a * only at the end"},
		"match query":         {with(`match: {route: "GET:/a?b=*"}`), "policies[1].match.route: "},
		"match control":       {with(`match: {"a\tb": x}`), "want printable ASCII"},
		"route and method":    {with(`match: {route: "GET:/a", method: POST}`), `policies[1].match.method: "POST", want GET`},
		"name long":           {with("match: {" + strings.Repeat("n", 65) + ": x}"), "65 bytes, want at most 64"},
		"deep":                {"home: " + strings.Repeat("[", 200) + "\n", "more than 100 brackets"},
		"long line":           {"home: [tenant] #" + strings.Repeat("x", 20_000) + "\n", "a line of more than 16384 bytes"},
		"not UTF-8 in a name": {with("match: {\"\xff\": x}"), "f.yaml: not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Parse("f.yaml", []byte(c.file))
			if err == nil {
				t.Fatalf("no error, but %+v", set)
			}
			if !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v\nwant %s", err, c.want)
			}
			if _, ok := err.(*ParseError); !ok {
				t.Errorf("%T, want a *ParseError", err)
			}
		})
	}
}

func TestErrorIsOneLine(t *testing.T) {
	for want, e := range map[string]ParseError{
		"p.yaml:12:5: policies[1].window: 0s, want 1ms": {File: "p.yaml", Line: 12, Column: 5, Field: "policies[1].window", Reason: "0s, want 1ms"},
		"12:5: x":   {Line: 12, Column: 5, Reason: "x"},
		"p.yaml: x": {File: "p.yaml", Reason: "x"},
		"home: x y": {Field: "home", Reason: "x\ny"},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSetsComeBackFromTheirCanonicalForm(t *testing.T) {
	want, err := Parse("f", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	want.Policies[2].Version = 812
	got, err := Decode(want.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	turned := *want
	turned.Policies = []*Policy{want.Policies[3], want.Policies[0], want.Policies[2], want.Policies[1]}
	if string(turned.Encode()) != string(want.Encode()) {
		t.Error("the order of policies changes the canonical form")
	}
	if turned.Policies[0].ID != "year" {
		t.Error("Encode changed its set")
	}
}

func TestDecodeIsStrict(t *testing.T) {
	s, err := Parse("f", []byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	good := string(s.Encode())
	for _, c := range [][2]string{
		{`"no_match":"deny"`, `"no_match":"perhaps"`},
		{`"token_bucket"`, `"leaky"`},
		{`"burst":40`, `"burst":40,"mode":"x"`},
		{`"burst":40`, `"burst":40,"speed":"x"`},
		{`"burst":40`, `"burst":0`},
		{`"home":["tenant"]`, `"home":[]`},
		{`{"home"`, `[{"home"`},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if _, err := Decode([]byte(bad)); err == nil || bad == good {
			t.Errorf("%s → %s: no error", c[0], c[1])
		}
	}
	if _, err := Decode([]byte(good + "1")); err == nil {
		t.Error("more after the end: no error")
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	f.Add([]byte(sample))
	f.Add([]byte(with("burst: 3")))
	f.Add([]byte("policies: [{id: a, scope: &x [tenant], match: *x}]"))
	f.Add([]byte("? - - - a\n: |\n  b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f", data)
		if err != nil {
			if _, ok := err.(*ParseError); !ok || strings.Contains(err.Error(), "\n") {
				t.Fatalf("%T %q", err, err)
			}
			return
		}
		again, err := Decode(s.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s, again); d != "" {
			t.Fatal(d)
		}
		if _, err := Compile(s, Keys{Slots: 16}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestThousandsOfPoliciesParse(t *testing.T) {
	var b strings.Builder
	b.WriteString("policies:\n")
	for i := range 2_000 {
		fmt.Fprintf(&b, "  - id: p%d\n    match: {tenant: t%d}\n    scope: [tenant]\n    algorithm: token_bucket\n    amount: 10\n    window: 1s\n", i, i)
	}
	s, err := Parse("f", []byte(b.String()))
	if err != nil || len(s.Policies) != 2_000 {
		t.Fatal(err)
	}
}

// TestErrorOnLineForty: whatever stands around it, the line is that of the file.
func TestErrorOnLineForty(t *testing.T) {
	var b strings.Builder
	b.WriteString("# head\nno_match: deny\n\npolicies:\n")
	for i := range 12 {
		fmt.Fprintf(&b, "  - id: p%d\n    scope: [tenant]\n    amount: 10\n    window: 1s\n", i)
	}
	lines := strings.Split(b.String()+"\nhome: [tenant]\n", "\n")
	for bad, want := range map[string]string{
		"    window: 1us":     "f.yaml:40:5: policies[8].window: 1µs, want 1ms … 8784h0m0s",
		"    widow: 1s":       "f.yaml:40:5: policies[8].widow: unknown key, want id, ",
		"    window: \"größe": "f.yaml:40:",
	} {
		was := lines[39]
		lines[39] = bad
		for _, more := range []int{0, smallFile} { // the YAML parser is asked, and not
			data := strings.Join(lines, "\n") + "#" + strings.Repeat("x\n#", more/3)
			if _, err := Parse("f.yaml", []byte(data)); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v, want %s", bad, err, want)
			}
		}
		lines[39] = was
	}
}

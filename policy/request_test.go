package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/api/fault"
)

func full() *Request {
	r := &Request{Tenant: "acme", Route: "POST:/v1/payments?x=1#y", Plan: "standard", Region: "eu", Cost: 1}
	for i := range MaxPrincipals {
		r.Principals = append(r.Principals, Principal{fmt.Sprint("type", i), strings.Repeat("p", MaxValue)})
	}
	for i := range MaxAttributes {
		r.Attributes = append(r.Attributes, Attribute{fmt.Sprint("name", i), strings.Repeat("v", MaxValue)})
	}
	for i := range MaxCosts {
		r.Costs = append(r.Costs, PolicyCost{fmt.Sprint("policy", i), 1_000_000_000})
	}
	return r
}

func TestValidRequests(t *testing.T) {
	for name, r := range map[string]*Request{
		"empty":           {},
		"full":            full(),
		"cost":            {Tenant: strings.Repeat("t", MaxTenant), Cost: 1_000_000_000},
		"long route":      {Route: "GET:/" + strings.Repeat("x", MaxRoute-5) + "?" + strings.Repeat("q", 7000)},
		"method":          {Route: "M-SEARCH:/"},
		"colon in path":   {Route: "GET:/a:b"},
		"empty attribute": {Attributes: []Attribute{{"a", ""}}},
		"same name":       {Principals: []Principal{{"a", "1"}}, Attributes: []Attribute{{"a", "2"}}},
		"UTF-8 name":      {Attributes: []Attribute{{"größe", "groß\n"}}},
	} {
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadRequestsNameTheirField(t *testing.T) {
	change := func(f func(*Request)) *Request { r := full(); f(r); return r }
	for name, c := range map[string]struct {
		r     *Request
		field string
	}{
		"tenant":         {&Request{Tenant: strings.Repeat("t", 65)}, "tenant"},
		"tenant UTF-8":   {&Request{Tenant: "\xff"}, "tenant"},
		"plan":           {&Request{Plan: strings.Repeat("t", 257)}, "plan"},
		"region":         {&Request{Region: strings.Repeat("t", 257)}, "region"},
		"cost":           {&Request{Cost: 1_000_000_001}, "cost"},
		"route":          {&Request{Route: "/v1"}, "route"},
		"route method":   {&Request{Route: ":/v1"}, "route"},
		"route case":     {&Request{Route: "get:/v1"}, "route"},
		"route path":     {&Request{Route: "GET:v1"}, "route"},
		"route long":     {&Request{Route: "GET:/" + strings.Repeat("x", MaxRoute)}, "route"},
		"route raw":      {&Request{Route: "GET:/?" + strings.Repeat("x", MaxRawRoute)}, "route"},
		"principals":     {change(func(r *Request) { r.Principals = append(r.Principals, Principal{"x", "y"}) }), "principals"},
		"attributes":     {change(func(r *Request) { r.Attributes = append(r.Attributes, Attribute{"x", "y"}) }), "attributes"},
		"type twice":     {change(func(r *Request) { r.Principals[7].Type = "type2" }), "principals[7].type"},
		"type empty":     {change(func(r *Request) { r.Principals[1].Type = "" }), "principals[1].type"},
		"type reserved":  {change(func(r *Request) { r.Principals[1].Type = "tenant" }), "principals[1].type"},
		"type long":      {change(func(r *Request) { r.Principals[1].Type = strings.Repeat("x", 65) }), "principals[1].type"},
		"id empty":       {change(func(r *Request) { r.Principals[1].ID = "" }), "principals[1].id"},
		"id long":        {change(func(r *Request) { r.Principals[1].ID += "x" }), "principals[1].id"},
		"id UTF-8":       {change(func(r *Request) { r.Principals[1].ID = "\xc0" }), "principals[1].id"},
		"name twice":     {change(func(r *Request) { r.Attributes[15].Name = "name2" }), "attributes[15].name"},
		"name empty":     {change(func(r *Request) { r.Attributes[3].Name = "" }), "attributes[3].name"},
		"name reserved":  {change(func(r *Request) { r.Attributes[3].Name = "route_class" }), "attributes[3].name"},
		"name control":   {change(func(r *Request) { r.Attributes[3].Name = "a\x00" }), "attributes[3].name"},
		"name C1":        {change(func(r *Request) { r.Attributes[3].Name = "a\u0085" }), "attributes[3].name"},
		"name UTF-8":     {change(func(r *Request) { r.Attributes[3].Name = "a\xff" }), "attributes[3].name"},
		"name short":     {change(func(r *Request) { r.Attributes[3].Name = "principal_id" }), "attributes[3].name"},
		"costs":          {change(func(r *Request) { r.Costs = append(r.Costs, PolicyCost{"x", 1}) }), "costs"},
		"costs twice":    {change(func(r *Request) { r.Costs[2].Policy = "policy1" }), "costs[2].policy"},
		"costs no name":  {change(func(r *Request) { r.Costs[2].Policy = "" }), "costs[2].policy"},
		"costs ASCII":    {change(func(r *Request) { r.Costs[2].Policy = "é" }), "costs[2].policy"},
		"costs large":    {change(func(r *Request) { r.Costs[2].Cost = 1_000_000_001 }), "costs[2].cost"},
		"value long":     {change(func(r *Request) { r.Attributes[3].Value += "x" }), "attributes[3].value"},
		"value UTF-8":    {change(func(r *Request) { r.Attributes[3].Value = "\xff" }), "attributes[3].value"},
		"counts are 1st": {change(func(r *Request) { r.Tenant = "\xff"; r.Cost = 1 << 40 }), "cost"},
	} {
		err := c.r.Validate()
		var e *fault.Error
		if !errors.Is(err, fault.InvalidArgument) || !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("%s: %v, want an error about %s", name, err, c.field)
		}
	}
}

func TestValidRequestCostsNoAllocation(t *testing.T) {
	r := full()
	if n := testing.AllocsPerRun(100, func() {
		if r.Validate() != nil {
			t.Fatal("not valid")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkValidate(b *testing.B) {
	r := &Request{Tenant: "acme", Principals: []Principal{{"api_key", "k1"}}, Route: "GET:/v1/items", Plan: "standard", Cost: 1}
	for b.Loop() {
		if err := r.Validate(); err != nil {
			b.Fatal(err)
		}
	}
}

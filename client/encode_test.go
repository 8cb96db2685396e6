package client

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/ringlimit/ringlimit/api/fault"
	pb "github.com/ringlimit/ringlimit/api/ringlimit/v1"
	"github.com/ringlimit/ringlimit/api/route"
)

func number(v int64) *int64 { return &v }

func TestRequestsAreWrittenAsProtobuf(t *testing.T) {
	for _, c := range []struct {
		r    Request
		want *pb.DecideRequest
	}{
		{Request{}, &pb.DecideRequest{Subject: &pb.Subject{}}},
		{Request{Tenant: "acme", Cost: 1}, &pb.DecideRequest{Subject: &pb.Subject{Tenant: "acme"}}},
		{Request{Look: true, StaleOK: true}, &pb.DecideRequest{Subject: &pb.Subject{}, Cost: number(0), StaleOk: true}},
		{Request{Witness: true}, &pb.DecideRequest{Subject: &pb.Subject{}, Witness: true}},
		{
			Request{
				Tenant: strings.Repeat("ü", 100), Principals: []Principal{{"user", "u1"}, {"ip", "::1"}}, Route: "GET:/v1/x?y", Plan: "p", Region: "eu",
				Attributes: map[string]string{"b": "2", "a": "1", "c": ""}, Cost: 1e9, RequestID: "mine",
				Costs: map[string]int64{"export": 1e9, "bytes": 0},
			},
			&pb.DecideRequest{
				Subject: &pb.Subject{
					Tenant: strings.Repeat("ü", 100), Principals: []*pb.Principal{{Type: "user", Id: "u1"}, {Type: "ip", Id: "::1"}}, Route: "GET:/v1/x?y", Plan: "p", Region: "eu",
					Attributes: []*pb.Attribute{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}, {Name: "c"}},
				},
				Cost: number(1e9), RequestId: "mine", Costs: []*pb.PolicyCost{{Policy: "bytes"}, {Policy: "export", Cost: 1e9}},
			},
		},
	} {
		var got pb.DecideRequest
		if err := proto.Unmarshal(c.r.append(nil), &got); err != nil || !proto.Equal(&got, c.want) {
			t.Errorf("%+v became %v, %v", c.r, &got, err)
		}
	}
}

func TestBadRequestsAreNotSent(t *testing.T) {
	for field, r := range map[string]Request{
		"cost":                    {Cost: 1e9 + 1},
		"request_id":              {RequestID: strings.Repeat("x", 65)},
		"subject.tenant":          {Tenant: "\xff"},
		"subject.route":           {Route: "\xff"},
		"subject.plan":            {Plan: "\xff"},
		"subject.region":          {Region: "\xff"},
		"subject.principals":      {Principals: make([]Principal, 9)},
		"subject.principals[1]":   {Principals: []Principal{{}, {"user", "\xff"}}},
		`subject.attributes["a"]`: {Attributes: map[string]string{"a": "\xff"}},
		`costs["p"]`:              {Costs: map[string]int64{"p": -1}},
		`costs["q"]`:              {Costs: map[string]int64{"q": 1e9 + 1}},
		`costs["\xff"]`:           {Costs: map[string]int64{"\xff": 1}},
		"costs":                   {Look: true, Costs: map[string]int64{"p": 0}},
		"subject":                 {Tenant: strings.Repeat("x", 70_000)},
	} {
		c := &Client{budget: newBudget(), nowhere: &group{}}
		c.calls.New = func() any { return newSingle() }
		_, err := c.newCall(t.Context(), &r)
		var e *fault.Error
		if !errors.As(err, &e) || e.Kind != fault.InvalidArgument || e.Field != field {
			t.Errorf("got %v, want an error about %s", err, field)
		}
	}
	c := Client{}
	c.calls.New = func() any { return newSingle() }
	if _, err := c.newCall(t.Context(), &Request{Look: true, Cost: 2}); !errors.Is(err, fault.InvalidArgument) {
		t.Errorf("a look with a cost: %v", err)
	}
}

func TestHomeOfARequest(t *testing.T) {
	h, ok := route.New(make([]byte, route.KeySize), 1024)
	if !ok {
		t.Fatal("no hash")
	}
	r := Request{
		Tenant: "acme", Route: "GET:/v1/x?q=1#f", Plan: "gold", Region: "eu",
		Principals: []Principal{{"api_key", "k1"}}, Attributes: map[string]string{"shard": "s1", "api_key": "hidden by the principal"},
	}
	for _, c := range []struct {
		home   []string
		values []string // nil: the request has no home
	}{
		{[]string{"tenant"}, []string{"acme"}},
		{[]string{"tenant", "api_key"}, []string{"acme", "k1"}},
		{[]string{"api_key", "tenant"}, []string{"k1", "acme"}},
		{[]string{"route", "method", "plan", "region", "shard"}, []string{"GET:/v1/x", "GET", "gold", "eu", "s1"}},
		{[]string{"tenant", "user"}, nil},
		{[]string{"missing"}, nil},
	} {
		var want []byte
		for _, v := range c.values {
			want = route.Append(want, v)
		}
		slot, ok := r.slot(h, c.home)
		if ok != (c.values != nil) || ok && slot != h.Slot(want) {
			t.Errorf("home %v: slot %d, %v", c.home, slot, ok)
		}
	}
}

func TestBudgetIsATenth(t *testing.T) {
	b := newBudget()
	spent := 0
	for range 10_000 {
		b.earn(1)
		for b.spend() {
			spent++
		}
	}
	if spent != 1010 {
		t.Errorf("%d retries for 10,000 requests, want 1,010", spent)
	}
	b.earn(1 << 40)
	b.earn(1 << 40)
	if b.tenths.Load() > 1<<41 {
		t.Error("a budget grows without bound")
	}
}

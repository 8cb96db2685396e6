package main

import (
	"os"
	"testing"

	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	filter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"

	"github.com/ringlimit/ringlimit/policy"
	"github.com/ringlimit/ringlimit/transport/envoy"
)

const sample = "../../examples/envoy/"

// TestSampleBootstrapIsWhatEnvoyReads: every field is known, every value valid, also in
// the configuration of extensions.
func TestSampleBootstrapIsWhatEnvoyReads(t *testing.T) {
	all := sampleMessages(t)
	filters, asks := 0, 0
	for _, m := range all {
		if v, ok := m.(interface{ ValidateAll() error }); ok {
			if err := v.ValidateAll(); err != nil {
				t.Errorf("%s: %v", m.ProtoReflect().Descriptor().Name(), err)
			}
		}
		if f, ok := m.(*filter.RateLimit); ok {
			filters++
			for _, h := range f.GetRateLimitService().GetGrpcService().GetInitialMetadata() {
				if h.GetKey() == envoy.HeadersKey {
					asks++
				}
			}
		}
	}
	if filters != 1 || asks != 1 {
		t.Errorf("%d filters, %d that ask for headers; want one of each", filters, asks)
	}
}

// TestSampleDescriptorsFallUnderSamplePolicies: each of those that the routes make has
// exactly one policy, and each policy has one.
func TestSampleDescriptorsFallUnderSamplePolicies(t *testing.T) {
	data, err := os.ReadFile(sample + "policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.Parse("policies.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	index, err := policy.Compile(set, policy.Keys{Slots: 1})
	if err != nil {
		t.Fatal(err)
	}
	domain, used := "", map[string]bool{}
	var limits []*route.RateLimit
	for _, m := range sampleMessages(t) {
		switch m := m.(type) {
		case *filter.RateLimit:
			domain = m.GetDomain()
		case *hcm.HttpConnectionManager:
			for _, r := range m.GetRouteConfig().GetVirtualHosts()[0].GetRoutes() {
				limits = append(limits, r.GetRoute().GetRateLimits()...)
			}
		}
	}
	for _, l := range limits {
		d := descriptorOf(t, l)
		hits := index.Match(attributes(domain, d), nil)
		if len(hits) != 1 {
			t.Errorf("%v falls under %d policies, want one", d, len(hits))
			continue
		}
		used[hits[0].Policy.ID] = true
	}
	if len(limits) != 3 || len(used) != len(set.Policies) {
		t.Errorf("%d descriptors use the policies %v of %d", len(limits), used, len(set.Policies))
	}
}

// descriptorOf is what Envoy makes of a route's actions for a POST.
func descriptorOf(t *testing.T, l *route.RateLimit) *common.RateLimitDescriptor {
	d := new(common.RateLimitDescriptor)
	for _, a := range l.GetActions() {
		e := new(common.RateLimitDescriptor_Entry)
		switch a := a.GetActionSpecifier().(type) {
		case *route.RateLimit_Action_GenericKey_:
			e.Key, e.Value = a.GenericKey.GetDescriptorKey(), a.GenericKey.GetDescriptorValue()
		case *route.RateLimit_Action_RemoteAddress_:
			e.Key, e.Value = "remote_address", "192.0.2.1"
		case *route.RateLimit_Action_RequestHeaders_:
			e.Key, e.Value = a.RequestHeaders.GetDescriptorKey(), "acme"
			if a.RequestHeaders.GetHeaderName() == ":method" {
				e.Value = "POST"
			}
		default:
			t.Errorf("an action %T, which this test does not know", a)
		}
		d.Entries = append(d.Entries, e)
	}
	return d
}

// sampleMessages are the bootstrap and all typed configuration in it, read strictly.
func sampleMessages(t *testing.T) []proto.Message {
	t.Helper()
	text, err := os.ReadFile(sample + "envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	data, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	b := new(bootstrap.Bootstrap)
	if err := protojson.Unmarshal(data, b); err != nil {
		t.Fatal(err)
	}
	return typed(t, b, []proto.Message{b})
}

// typed appends what is packed in any field of m, at any depth.
func typed(t *testing.T, m proto.Message, all []proto.Message) []proto.Message {
	if a, ok := m.(*anypb.Any); ok {
		inner, err := a.UnmarshalNew()
		if err != nil {
			t.Fatal(err)
		}
		return typed(t, inner, append(all, inner))
	}
	visit := func(v protoreflect.Value) { all = typed(t, v.Message().Interface(), all) }
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				visit(v)
				return true
			})
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				visit(v.List().Get(i))
			}
		case !f.IsMap() && !f.IsList() && f.Message() != nil:
			visit(v)
		}
		return true
	})
	return all
}

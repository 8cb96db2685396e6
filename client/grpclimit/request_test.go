package grpclimit_test

import (
	"context"
	"math"
	"net"
	"net/netip"
	"reflect"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/grpclimit"
	"github.com/ringlimit/ringlimit/policy"
)

func TestRequestOfACall(t *testing.T) {
	opts := []grpclimit.Option{
		grpclimit.Principal("user", grpclimit.Metadata("x-old")),
		grpclimit.Principal("api_key", grpclimit.Metadata("x-key")),
		grpclimit.Principal("service", grpclimit.Metadata("x-absent")),
		grpclimit.Principal("user", grpclimit.Metadata("x-user")),
		grpclimit.Plan(func(context.Context, grpclimit.Call) string { return "gold" }),
		grpclimit.MethodCosts(map[string]int64{getMethod: 10}),
		grpclimit.Refine(func(_ context.Context, _ grpclimit.Call, r *client.Request) { r.Region, r.RequestID = "eu", "own" }),
	}
	f := new(fake)
	serve(t, f, opts, func(t *testing.T, s *server) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "x-old", "old", "x-key", "spoofed", "x-key", "k1", "x-user", "ann")
		s.call(ctx)
		s.talk(ctx, 3)
	})
	want := client.Request{
		Tenant: "acme", Plan: "gold", Region: "eu", RequestID: "own", Route: "GRPC:/test.Items/Get", Cost: 10,
		Principals: []client.Principal{{Type: "api_key", ID: "k1"}, {Type: "user", ID: "ann"}},
	}
	stream := want
	stream.Route, stream.Cost = "GRPC:/test.Items/Chat", 0
	if got := f.requests(); !reflect.DeepEqual(got, []client.Request{want, stream}) {
		t.Errorf("asked %+v", got)
	}
}

// TestRoutesAreThoseOfPolicies: policies may name them, and nodes take them.
func TestRoutesAreThoseOfPolicies(t *testing.T) {
	f := new(fake)
	serve(t, f, []grpclimit.Option{grpclimit.PerMessage()}, func(t *testing.T, s *server) {
		s.call(t.Context())
		s.talk(t.Context(), 1)
	})
	var routes []string
	for _, r := range f.requests() {
		routes = append(routes, r.Route)
		q := policy.Request{Route: r.Route, Cost: 1}
		if err := q.Validate(); err != nil {
			t.Errorf("%v", err)
		}
		file := `policies: [{id: p, match: {route: "` + r.Route + `"}, scope: [tenant], amount: 5, window: 1h}]`
		if _, err := policy.Parse("test.yaml", []byte(file)); err != nil {
			t.Errorf("%v", err)
		}
	}
	if want := []string{"GRPC:/test.Items/Get", "GRPC:/test.Items/Chat", "GRPC-MESSAGE:/test.Items/Chat"}; !reflect.DeepEqual(routes, want) {
		t.Errorf("%q, want %q", routes, want)
	}
}

func TestSkippedCallsAskNobody(t *testing.T) {
	f := &fake{decide: always(denied(1), nil)}
	skip := grpclimit.Skip(func(_ context.Context, c grpclimit.Call) bool { return c.Method == getMethod || c.Stream })
	serve(t, f, []grpclimit.Option{skip, grpclimit.PerMessage()}, func(t *testing.T, s *server) {
		s.get = func(ctx context.Context, text string) (string, error) {
			if _, ok := grpclimit.DecisionFrom(ctx); ok {
				t.Error("a skipped call has a decision")
			}
			return text, nil
		}
		if o := s.call(t.Context()); o.code() != codes.OK || o.text != "hi" {
			t.Errorf("%v", o.status)
		}
		if o := s.talk(t.Context(), 3); o.code() != codes.OK || o.text != "012" {
			t.Errorf("%v", o.status)
		}
	})
	if n := len(f.requests()); n != 0 {
		t.Errorf("asked %d times", n)
	}
}

func TestHandlersSeeTheDecision(t *testing.T) {
	both(t, func() *fake { return &fake{decide: always(granted(), nil)} }, nil, func(t *testing.T, _ *fake, s *server, call func(context.Context) outcome) {
		s.handlers(func(ctx context.Context) error {
			if d, ok := grpclimit.DecisionFrom(ctx); !ok || d.FencingToken != 7 || d.PolicyID != "items" {
				t.Errorf("%+v, %v", d, ok)
			}
			return nil
		})
		if o := call(t.Context()); o.code() != codes.OK {
			t.Errorf("%v", o.status)
		}
	})
}

// TestCallersAddress: an address that anybody can write down is never believed.
func TestCallersAddress(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104"), netip.MustParsePrefix("fd00::/8")}
	tcp := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	for name, c := range map[string]struct {
		peer net.Addr
		xff  []string
		want string // by the option
		bare string // without it
	}{
		"no proxy":                   {tcp("203.0.113.7:4000"), nil, "203.0.113.7", "203.0.113.7"},
		"a claim without a proxy":    {tcp("203.0.113.7:4000"), []string{"1.1.1.1"}, "203.0.113.7", "203.0.113.7"},
		"one proxy":                  {tcp("10.1.1.1:4000"), []string{"203.0.113.7"}, "203.0.113.7", "10.1.1.1"},
		"a claim before one proxy":   {tcp("10.1.1.1:4000"), []string{"1.1.1.1, 203.0.113.7"}, "203.0.113.7", "10.1.1.1"},
		"a claim of trust":           {tcp("10.1.1.1:4000"), []string{"1.1.1.1, 203.0.113.7, 10.9.9.9"}, "203.0.113.7", "10.1.1.1"},
		"a chain in several values":  {tcp("10.1.1.1:4000"), []string{"1.1.1.1", "203.0.113.7,10.2.2.2", "10.3.3.3"}, "203.0.113.7", "10.1.1.1"},
		"all trusted":                {tcp("10.1.1.1:4000"), []string{"10.4.4.4,10.5.5.5"}, "10.4.4.4", "10.1.1.1"},
		"a proxy that says nothing":  {tcp("10.1.1.1:4000"), nil, "10.1.1.1", "10.1.1.1"},
		"no address":                 {tcp("10.1.1.1:4000"), []string{"203.0.113.7, unknown"}, "10.1.1.1", "10.1.1.1"},
		"an empty entry":             {tcp("10.1.1.1:4000"), []string{"203.0.113.7,"}, "10.1.1.1", "10.1.1.1"},
		"with a port":                {tcp("10.1.1.1:4000"), []string{"203.0.113.7:9"}, "203.0.113.7", "10.1.1.1"},
		"IPv6":                       {tcp("[fd00::1]:4000"), []string{"[2001:db8::7]:9"}, "2001:db8::/64", "fd00::/64"},
		"in brackets":                {tcp("10.1.1.1:4000"), []string{"[2001:db8:0:1::7]"}, "2001:db8:0:1::/64", "10.1.1.1"},
		"IPv4 in IPv6 is the same":   {tcp("[::ffff:10.1.1.1]:4000"), []string{"::ffff:203.0.113.7"}, "203.0.113.7", "10.1.1.1"},
		"a zone is no other address": {tcp("[fe80::1%eth0]:4000"), nil, "fe80::/64", "fe80::/64"},
		"a peer of another type":     {named("10.1.1.1:4000"), []string{"203.0.113.7"}, "203.0.113.7", "10.1.1.1"},
		"a Unix socket":              {&net.UnixAddr{Name: "/run/s"}, []string{"203.0.113.7"}, "", ""},
		"nobody knows":               {nil, []string{"203.0.113.7"}, "", ""},
	} {
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: c.peer})
		md := metadata.MD{"x-forwarded-for": c.xff}
		ctx = metadata.NewIncomingContext(ctx, md)
		if got := askedIP(t, ctx, grpclimit.ForwardedIP("X-Forwarded-For", trusted...)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := askedIP(t, ctx); got != c.bare {
			t.Errorf("%s, by the peer: %q, want %q", name, got, c.bare)
		}
		own := grpclimit.Principal("ip", func(context.Context, grpclimit.Call) string { return "192.0.2.1" })
		if got := askedIP(t, ctx, own); got != "192.0.2.1" {
			t.Errorf("%s, of the application: %q", name, got)
		}
	}
}

type named string

func (named) Network() string  { return "test" }
func (n named) String() string { return string(n) }

// askedIP is the ip that a call with ctx is asked with.
func askedIP(t *testing.T, ctx context.Context, opts ...grpclimit.Option) (ip string) {
	t.Helper()
	f := new(fake)
	handler := func(context.Context, any) (any, error) { return nil, nil }
	if _, err := grpclimit.UnaryServer(f, opts...)(ctx, wrapperspb.String(""), &grpc.UnaryServerInfo{FullMethod: getMethod}, handler); err != nil {
		t.Fatal(err)
	}
	for _, p := range f.requests()[0].Principals {
		if p.Type != "ip" || ip != "" {
			t.Errorf("principals %v", f.requests()[0].Principals)
		}
		ip = p.ID
	}
	return ip
}

// TestIPv6CountsByItsFirstBits: by all of them if told so, when it looks like any address.
func TestIPv6CountsByItsFirstBits(t *testing.T) {
	addr := netip.MustParseAddrPort("[2001:db8:1:2:3::4]:9")
	ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: net.TCPAddrFromAddrPort(addr)})
	for bits, want := range map[int]string{1: "::/1", 48: "2001:db8:1::/48", 56: "2001:db8:1::/56", 128: "2001:db8:1:2:3::4"} {
		if got := askedIP(t, ctx, grpclimit.IPv6Bits(bits)); got != want {
			t.Errorf("%d bits: %q, want %q", bits, got, want)
		}
	}
}

func TestOptionsHaveRanges(t *testing.T) {
	for name, make := range map[string]func() grpclimit.Option{
		"jitter below":  func() grpclimit.Option { return grpclimit.Jitter(-0.1) },
		"jitter above":  func() grpclimit.Option { return grpclimit.Jitter(1.1) },
		"jitter none":   func() grpclimit.Option { return grpclimit.Jitter(math.NaN()) },
		"no bits":       func() grpclimit.Option { return grpclimit.IPv6Bits(0) },
		"too many bits": func() grpclimit.Option { return grpclimit.IPv6Bits(129) },
		"no prefix":     func() grpclimit.Option { return grpclimit.ForwardedIP("x", netip.Prefix{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: taken", name)
				}
			}()
			grpclimit.StreamServer(new(fake), make())
		}()
	}
}

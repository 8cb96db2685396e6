package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/ringlimit/ringlimit/client"
	"github.com/ringlimit/ringlimit/client/httplimit"
)

type contextKey struct{}

func TestKeysOfARequest(t *testing.T) {
	f := &fake{decision: client.Decision{Answer: search()}}
	r := get("/", "X-API-Key", "k-7", "X-Tenant", "acme", "X-Plan", "gold", "X-Region", "eu")
	r = r.WithContext(context.WithValue(r.Context(), contextKey{}, "ann"))
	ask(f, r,
		httplimit.APIKey("x-api-key"), httplimit.Tenant(httplimit.Header("X-Tenant")), httplimit.User(httplimit.Context(contextKey{})),
		httplimit.Principal("service", httplimit.Header("X-Service")), // not there
		httplimit.Principal("user", func(*http.Request) string { return "bob" }),
		httplimit.Attribute("region", httplimit.Header("X-Region")), httplimit.Attribute("none", httplimit.Header("X-None")),
		httplimit.Cost(func(*http.Request) int64 { return 3 }),
		httplimit.Fill(func(r *http.Request, q *client.Request) { q.Plan = r.Header.Get("X-Plan") + "/" + q.Tenant }),
		route("GET:/v1/items"),
	)
	want := client.Request{
		Tenant: "acme", Plan: "gold/acme", Route: "GET:/v1/items", Cost: 3, Attributes: map[string]string{"region": "eu"},
		Principals: []client.Principal{{Type: "api_key", ID: "k-7"}, {Type: "user", ID: "bob"}},
	}
	if got := f.last(t); !reflect.DeepEqual(got, want) {
		t.Errorf("asked %+v, want %+v", got, want)
	}
	ask(f, get("/some/path"), httplimit.APIKey("X-API-Key"), httplimit.User(httplimit.Context(contextKey{})), httplimit.ClientIP())
	if got, want := f.last(t), (client.Request{Principals: []client.Principal{{Type: "ip", ID: "192.0.2.1"}}}); !reflect.DeepEqual(got, want) {
		t.Errorf("without keys: asked %+v, want %+v", got, want)
	}
}

// TestCredentialsAreNotRepeated: who reads answers, or logs them, need not know keys.
func TestCredentialsAreNotRepeated(t *testing.T) {
	w := ask(&fake{decision: deniedFor(0)}, get("/", "X-API-Key", "k-secret", "X-Token", "t-secret"), httplimit.APIKey("X-API-Key"),
		httplimit.Principal("oauth_token", httplimit.Header("X-Token")), httplimit.ClientIP())
	if !strings.Contains(w.Body.String(), `"limit_scope":"api_key:*:oauth_token:*:ip:192.0.2.1"`) || strings.Contains(dump(w), "secret") {
		t.Errorf("got %s", dump(w))
	}
}

func TestClientIsWhomTheLastTrustedProxySaw(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:ffff::/48"), netip.MustParsePrefix("::ffff:172.16.0.0/108")}
	for _, c := range []struct {
		name, remote string
		forwarded    []string
		trusted      []netip.Prefix
		want         string
	}{
		{"no proxy", "203.0.113.9:4711", nil, proxies, "203.0.113.9"},
		{"made up without a proxy", "203.0.113.9:4711", []string{"198.51.100.1"}, proxies, "203.0.113.9"},
		{"made up, nobody trusted", "10.0.0.1:4711", []string{"198.51.100.1"}, nil, "10.0.0.1"},
		{"one proxy", "10.0.0.1:4711", []string{"203.0.113.9"}, proxies, "203.0.113.9"},
		{"made up before one proxy", "10.0.0.1:4711", []string{"198.51.100.1, 203.0.113.9"}, proxies, "203.0.113.9"},
		{"made up to look like a proxy", "10.0.0.1:4711", []string{"198.51.100.1, 10.0.0.7, 203.0.113.9"}, proxies, "203.0.113.9"},
		{"made up on a line of its own", "10.0.0.1:4711", []string{"198.51.100.1", "203.0.113.9"}, proxies, "203.0.113.9"},
		{"two proxies", "10.0.0.1:4711", []string{"198.51.100.1,203.0.113.9 ,\t10.2.3.4"}, proxies, "203.0.113.9"},
		{"two proxies, two lines", "10.0.0.1:4711", []string{"203.0.113.9", "10.2.3.4"}, proxies, "203.0.113.9"},
		{"all trusted", "10.0.0.1:4711", []string{"10.9.9.9, 10.2.3.4"}, proxies, "10.9.9.9"},
		{"proxy names nobody", "10.0.0.1:4711", []string{"203.0.113.9, "}, proxies, "10.0.0.1"},
		{"proxy names no address", "10.0.0.1:4711", []string{"203.0.113.9, unknown"}, proxies, "10.0.0.1"},
		{"garbage further left", "10.0.0.1:4711", []string{"\x00, 203.0.113.9"}, proxies, "203.0.113.9"},
		{"with a port", "10.0.0.1:4711", []string{"203.0.113.9:99"}, proxies, "203.0.113.9"},
		{"proxy within IPv6", "[::ffff:10.0.0.1]:4711", []string{"::ffff:203.0.113.9"}, proxies, "203.0.113.9"},
		{"prefix within IPv6", "172.16.3.4:4711", []string{"203.0.113.9"}, proxies, "203.0.113.9"},
		{"IPv6", "[2001:db8:1:2:3:4:5:6]:4711", nil, proxies, "2001:db8:1:2::/64"},
		{"IPv6 with a zone", "[fe80::1%eth0]:4711", nil, proxies, "fe80::/64"},
		{"IPv6 proxy and client", "[2001:db8:ffff::1]:4711", []string{"2001:db8:1:2::9"}, proxies, "2001:db8:1:2::/64"},
		{"IPv6 with a port", "10.0.0.1:4711", []string{"[2001:db8:1:2::9]:80"}, proxies, "2001:db8:1:2::/64"},
		{"IPv6 in brackets", "10.0.0.1:4711", []string{"[2001:db8:1:2::9]"}, proxies, "2001:db8:1:2::/64"},
		{"IPv4 in brackets", "10.0.0.1:4711", []string{"[203.0.113.9]"}, proxies, "10.0.0.1"},
		{"no port", "203.0.113.9", nil, proxies, "203.0.113.9"},
		{"Unix socket", "@", []string{"203.0.113.9"}, proxies, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{decision: client.Decision{Answer: search()}}
			r := get("/", "Forwarded", "for=198.51.100.1", "X-Real-IP", "198.51.100.1")
			r.RemoteAddr, r.Header["X-Forwarded-For"] = c.remote, c.forwarded
			ask(f, r, httplimit.ClientIP(c.trusted...))
			got := ""
			for _, p := range f.last(t).Principals {
				got += p.Type + "=" + p.ID
			}
			if want := strings.TrimSuffix("ip="+c.want, "ip="); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestForwardedIsReadInPlaceOfXForwardedFor: only where it was chosen, and nothing that
// a client sends reaches into what its proxy adds.
func TestForwardedIsReadInPlaceOfXForwardedFor(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	for _, c := range []struct {
		name      string
		forwarded []string
		want      string
	}{
		{"none", nil, "10.0.0.1"},
		{"plain", []string{"for=203.0.113.9"}, "203.0.113.9"},
		{"all there can be", []string{`by=10.0.0.1;For="203.0.113.9:80";proto=https;host="example.com:80"`}, "203.0.113.9"},
		{"IPv6", []string{`for="[2001:db8:1:2::9]:80"`}, "2001:db8:1:2::/64"},
		{"two proxies", []string{"for=198.51.100.1, for=203.0.113.9", "for=10.9.9.9;proto=http"}, "203.0.113.9"},
		{"open quote of a client", []string{`for="198.51.100.1, for=203.0.113.9`}, "203.0.113.9"},
		{"quoted comma of a client", []string{`for=198.51.100.1;host="a, for=10.3.3.3", for=203.0.113.9`}, "203.0.113.9"},
		{"quoted comma in what the proxy adds", []string{`for=203.0.113.9;host="a, for=198.51.100.1"`}, "10.0.0.1"},
		{"quoted comma before", []string{`host="a, b";for=203.0.113.9`}, "10.0.0.1"},
		{"hidden", []string{"for=198.51.100.1, for=_hidden"}, "10.0.0.1"},
		{"unknown", []string{"for=198.51.100.1, for=unknown"}, "10.0.0.1"},
		{"nobody", []string{"for=198.51.100.1, proto=http"}, "10.0.0.1"},
		{"empty", []string{"for=198.51.100.1, "}, "10.0.0.1"},
		{"twice", []string{"for=198.51.100.1;for=203.0.113.9"}, "10.0.0.1"},
		{"not quoted", []string{"for=[2001:db8::1]"}, "10.0.0.1"},
		{"escaped", []string{`for="203.0.113.\9"`}, "10.0.0.1"},
		{"escaped end", []string{"for=\"203.0.113.9\\"}, "10.0.0.1"},
		{"no value", []string{"for"}, "10.0.0.1"},
		{"empty value", []string{`for=""`}, "10.0.0.1"},
		{"no end", []string{`for="203.0.113.9`}, "10.0.0.1"},
		{"spaces", []string{"for = 203.0.113.9"}, "10.0.0.1"},
		{"something after it", []string{`for="203.0.113.9"x`}, "10.0.0.1"},
		{"a semicolon at the end", []string{"for=203.0.113.9;"}, "10.0.0.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &fake{decision: client.Decision{Answer: search()}}
			r := get("/", "X-Forwarded-For", "198.51.100.1")
			r.RemoteAddr, r.Header["Forwarded"] = "10.0.0.1:4711", c.forwarded
			ask(f, r, httplimit.ClientIPBehind(httplimit.Proxies{Trusted: trusted, Forwarded: true}))
			if got := f.last(t).Principals[0].ID; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestBitsOfIPv6(t *testing.T) {
	for bits, want := range map[int]string{0: "2001:db8:1:2::/64", 48: "2001:db8:1::/48", 128: "2001:db8:1:2:3:4:5:6", 1: "::/1"} {
		f := &fake{decision: client.Decision{Answer: search()}}
		r := get("/")
		r.RemoteAddr = "[2001:db8:1:2:3:4:5:6]:4711"
		ask(f, r, httplimit.ClientIPBehind(httplimit.Proxies{IPv6Bits: bits}))
		if got := f.last(t).Principals[0].ID; got != want {
			t.Errorf("%d bits: %s, want %s", bits, got, want)
		}
	}
	for name, bad := range map[string]httplimit.Proxies{
		"-1 bits": {IPv6Bits: -1}, "129 bits": {IPv6Bits: 129}, "no prefix": {Trusted: []netip.Prefix{{}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			httplimit.ClientIPBehind(bad)
		}()
	}
}

// FuzzClientIsNeverMadeUp: whatever a client sends, with the address that its proxy adds
// it is that address.
func FuzzClientIsNeverMadeUp(f *testing.F) {
	for _, s := range []string{"", "198.51.100.1", "for=\"198.51.100.1", "10.0.0.7, ", "\\", "[", "::1%a,b"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	f.Fuzz(func(t *testing.T, sent string, own bool) {
		for _, forwarded := range []bool{false, true} {
			header, adds := "X-Forwarded-For", "203.0.113.9"
			if forwarded {
				header, adds = "Forwarded", "for=203.0.113.9;proto=http"
			}
			r := get("/")
			r.RemoteAddr, r.Header[header] = "10.0.0.1:4711", []string{sent, adds}
			if own { // the proxy adds to the line that it got
				r.Header[header] = []string{sent + ", " + adds}
			}
			d := &fake{decision: client.Decision{Answer: search()}}
			ask(d, r, httplimit.ClientIPBehind(httplimit.Proxies{Trusted: trusted, Forwarded: forwarded}))
			if got := d.last(t).Principals[0].ID; got != "203.0.113.9" {
				t.Errorf("%s %q: client %s", header, r.Header[header], got)
			}
		}
	})
}

// TestRouteIsThePattern, whether the middleware stands around the mux or inside it, and
// the paths and methods that clients make up make no routes.
func TestRouteIsThePattern(t *testing.T) {
	patterns := []string{"GET /v1/items/{id}", "POST /v1/export", "/static/", "/{$}", "example.com/host/{rest...}", "PUT example.com/put"}
	for _, c := range []struct{ method, url, want string }{
		{"GET", "/v1/items/7", "GET:/v1/items/{id}"},
		{"HEAD", "/v1/items/7?x=1#y", "GET:/v1/items/{id}"},
		{"POST", "/v1/export", "POST:/v1/export"},
		{"GET", "/static/a/b/c", "GET:/static/"},
		{"DELETE", "/static/x", "DELETE:/static/"},
		{"XYZZY-1", "/static/x", "OTHER:/static/"},
		{"get", "/static/x", "OTHER:/static/"},
		{"GET", "/", "GET:/"},
		{"PATCH", "http://example.com/host/a/b", "PATCH:/host/{rest...}"},
		{"PUT", "http://example.com/put", "PUT:/put"},
		{"GET", "/nowhere/" + fmt.Sprint(42), ""},
		{"DELETE", "/v1/export", ""},
	} {
		for _, inside := range []bool{false, true} {
			f := &fake{decision: client.Decision{Answer: search()}}
			limit := httplimit.New(f)
			mux := http.NewServeMux()
			var whole http.Handler = limit(mux)
			if inside {
				whole = mux
			}
			for _, p := range patterns {
				var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Pattern, r.PathValue("id")) })
				if inside {
					h = limit(h)
				}
				mux.Handle(p, h)
			}
			w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, c.url, nil)
			whole.ServeHTTP(w, r)
			if inside && c.want == "" {
				if len(f.asked) > 0 {
					t.Errorf("%s %s inside: asked for no handler", c.method, c.url)
				}
				continue
			}
			if got := f.last(t).Route; got != c.want {
				t.Errorf("%s %s, inside %v: route %q, want %q", c.method, c.url, inside, got, c.want)
			}
			if c.want != "" && (r.Pattern == "" || !strings.HasPrefix(w.Body.String(), r.Pattern)) {
				t.Errorf("%s %s, inside %v: pattern outside %q, the handler saw %s", c.method, c.url, inside, r.Pattern, w.Body)
			}
		}
	}
}

func TestIdempotencyKeyIsTheIDOnlyIfAskedFor(t *testing.T) {
	f := &fake{decision: client.Decision{Answer: search()}}
	if ask(f, get("/", "Idempotency-Key", "order-7")); f.last(t).RequestID != "" {
		t.Error("taken over without being asked")
	}
	if ask(f, get("/"), httplimit.IdempotencyKey()); f.last(t).RequestID != "" {
		t.Error("taken from nowhere")
	}
	long := strings.Repeat("x", 64)
	if ask(f, get("/", "Idempotency-Key", long), httplimit.IdempotencyKey()); f.last(t).RequestID != long {
		t.Errorf("asked with %q", f.last(t).RequestID)
	}
	asked := len(f.asked)
	for _, bad := range [][]string{{""}, {long + "x"}, {"a\tb"}, {"é"}, {"a", "a"}} {
		r := get("/")
		r.Header["Idempotency-Key"] = bad
		w := ask(f, r, httplimit.IdempotencyKey(), httplimit.FailOpen())
		if w.Code != 400 || !strings.Contains(w.Body.String(), "Idempotency-Key") || w.Header().Get("Retry-After") != "" {
			t.Errorf("%q: %s", bad, dump(w))
		}
	}
	if len(f.asked) != asked {
		t.Error("asked for an id that cannot be")
	}
}

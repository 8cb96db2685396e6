package clientip

import (
	"net/netip"
	"strings"
	"testing"
)

func mustTrust(t *testing.T, prefixes ...string) Proxies {
	t.Helper()
	var all []netip.Prefix
	for _, p := range prefixes {
		all = append(all, netip.MustParsePrefix(p))
	}
	p, err := Trust(all)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestClientIsWhomTheLastTrustedProxySaw: whatever a client writes stands left of what the
// first trusted proxy has added, and is not read.
func TestClientIsWhomTheLastTrustedProxySaw(t *testing.T) {
	trusted := mustTrust(t, "10.0.0.0/8", "::ffff:172.16.0.0/108", "2001:db8:ffff::/48")
	for _, c := range []struct {
		name, peer string
		lists      []string
		want       string
	}{
		{"no proxy", "203.0.113.9", []string{"198.51.100.1"}, "203.0.113.9"},
		{"no list", "10.0.0.1", nil, "10.0.0.1"},
		{"one proxy", "10.0.0.1", []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		{"two proxies, two lists", "10.0.0.1", []string{"198.51.100.1", "203.0.113.9,\t172.17.0.1 ", "10.2.3.4"}, "203.0.113.9"},
		{"all trusted", "10.0.0.1", []string{"10.9.9.9, 10.2.3.4"}, "10.9.9.9"},
		{"names nobody", "10.0.0.1", []string{"203.0.113.9, "}, "10.0.0.1"},
		{"no address", "10.0.0.1", []string{"203.0.113.9, unknown"}, "10.0.0.1"},
		{"IPv6", "2001:db8:ffff::1", []string{"2001:db8::9"}, "2001:db8::9"},
	} {
		if got := trusted.Client(Parse(c.peer), c.lists, Parse); got.String() != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
	if got := (Proxies{}).Client(Parse("10.0.0.1"), []string{"203.0.113.9"}, Parse); got.String() != "10.0.0.1" {
		t.Errorf("nobody is trusted: %v", got)
	}
	if got := trusted.Client(netip.Addr{}, []string{"203.0.113.9"}, Parse); got.IsValid() {
		t.Errorf("a connection without an address: %v", got)
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"203.0.113.9": "203.0.113.9", "203.0.113.9:80": "203.0.113.9", "[2001:db8::1]:80": "2001:db8::1", "[2001:db8::1]": "2001:db8::1",
		"2001:db8::1": "2001:db8::1", "::ffff:203.0.113.9": "203.0.113.9", "fe80::1%eth0": "fe80::1", "[fe80::1%eth0]:80": "fe80::1",
		"[203.0.113.9]": "", "[2001:db8::1": "", "2001:db8::1]": "", "@": "", "": "", "203.0.113.9:": "", "localhost": "",
	} {
		got := ""
		if addr := Parse(in); addr.IsValid() {
			got = addr.String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestCounted(t *testing.T) {
	for _, c := range []struct {
		addr string
		bits int
		want string
	}{
		{"203.0.113.9", 64, "203.0.113.9"},
		{"2001:db8:1:2:3::4", SubscriberBits, "2001:db8:1:2::/64"},
		{"2001:db8:1:2:3::4", 1, "::/1"},
		{"2001:db8:1:2:3::4", 128, "2001:db8:1:2:3::4"},
		{"", 64, ""},
	} {
		if got := Counted(Parse(c.addr), c.bits); got != c.want {
			t.Errorf("%s by %d bits: %s, want %s", c.addr, c.bits, got, c.want)
		}
	}
	for bits, ok := range map[int]bool{0: false, 1: true, 128: true, 129: false} {
		if err := CheckBits(bits); (err == nil) != ok {
			t.Errorf("%d bits: %v", bits, err)
		}
	}
	if _, err := Trust([]netip.Prefix{{}}); err == nil {
		t.Error("trusted what is no prefix")
	}
}

// FuzzClientIsNeverMadeUp: whatever a client sends, what its proxy appends decides.
func FuzzClientIsNeverMadeUp(f *testing.F) {
	for _, s := range []string{"", "1.2.3.4", "10.0.0.1", `for="`, `for=1.2.3.4;by="10.0.0.1, `, "1.2.3.4,,"} {
		f.Add(s)
	}
	proxies, err := Trust([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sent string) {
		if strings.ContainsAny(sent, "\r\n") {
			t.Skip("not a header")
		}
		peer := Parse("10.0.0.1")
		for read, appended := range map[string]string{"x": "203.0.113.9", "f": "for=203.0.113.9"} {
			hop := Parse
			if read == "f" {
				hop = Forwarded
			}
			for _, lists := range [][]string{{sent, appended}, {sent + ", " + appended}} {
				if got := proxies.Client(peer, lists, hop); got != Parse("203.0.113.9") {
					t.Errorf("%q: %v", lists, got)
				}
			}
		}
	})
}

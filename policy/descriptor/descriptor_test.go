package descriptor

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ringlimit/ringlimit/policy"
)

func TestNamesOfEntries(t *testing.T) {
	for _, c := range []struct {
		keys, want []string
	}{
		{[]string{"remote_address", "path"}, []string{"remote_address", "path"}},
		{[]string{"generic_key", "generic_key", "x", "generic_key"}, []string{"generic_key", "generic_key#2", "x", "generic_key#3"}},
		{[]string{"generic_key#2", "entry.path"}, []string{"generic_key%232", "entry.entry.path"}},
		{[]string{"tenant", "plan", "region", "tenant"}, []string{"tenant", "plan", "region", "tenant#2"}},
		{[]string{"method", "route", "domain", "descriptor", "limit"}, []string{"entry.method", "entry.route", "entry.domain", "entry.descriptor", "entry.limit"}},
		{[]string{"principal_id", "user"}, []string{"entry.principal_id", "user"}},
		{[]string{"100%", "a b", "é", ""}, []string{"100%25", "a b", "%C3%A9", "%-"}},
		{[]string{strings.Repeat("k", 65)}, []string{strings.Repeat("k", 30) + "%~0d2da6b54c8ac5e7a6d07f8cc2a9e76b"}},
	} {
		entries := make([]Entry, len(c.keys))
		for i, k := range c.keys {
			entries[i].Key = k
		}
		got := Names(nil, entries)
		if len(c.keys[0]) > maxName { // what the hash is does not matter
			if got[0][:32] != c.want[0][:32] || len(got[0]) != maxName {
				t.Errorf("%q", got)
			}
			continue
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %q, want %q", c.keys, got, c.want)
		}
	}
}

func TestShapesAndValues(t *testing.T) {
	if got, want := ShapeOf([]Entry{{Key: "path"}, {Key: "a/b*%"}, {}}), "path/a%2Fb%2A%25/%-"; got != want {
		t.Errorf("shape %q, want %q", got, want)
	}
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ name, value, want string }{
		{"path", "/login", "/login"},
		{"path", "a*b", "a*b"},
		{"path", "", "\x00"},
		{"path", "\x00", "\x00\x00"},
		{"path", strings.Repeat("x", 252), strings.Repeat("x", 252)},
		{"tenant", strings.Repeat("x", 60), strings.Repeat("x", 60)},
	} {
		if got := Value(c.name, c.value); got != c.want {
			t.Errorf("%s=%q: %q, want %q", c.name, c.value, got, c.want)
		}
	}
	for name, longest := range map[string]int{"path": policy.MaxValue, "tenant": policy.MaxTenant} {
		got := Value(name, long)
		if len(got) != longest || !strings.HasPrefix(got, long[:LongestPrefix(name)]) || got == Value(name, long+"x") {
			t.Errorf("%s: %q of %d bytes", name, got, len(got))
		}
	}
}

// FuzzTwoDescriptorsAreTwoRequests: what differs stays different, whatever it is, and
// what comes out is what a request may carry.
func FuzzTwoDescriptorsAreTwoRequests(f *testing.F) {
	f.Add("a", "1", "b", "2", "a_1", "", "b", "2")
	f.Add("a", "", "a", "", "a", "\x00", "a#2", "")
	f.Add("entry.method", "x", "method", "y", "method", "x", "entry.method", "y")
	f.Add("method#2", "", "method", "", "method", "", "method", "")
	f.Add(strings.Repeat("k", 100), strings.Repeat("é", 200), "", "", strings.Repeat("k", 99), strings.Repeat("é", 201), "", "")
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2, k3, v3, k4, v4 string) {
		for _, s := range []string{k1, v1, k2, v2, k3, v3, k4, v4} {
			if !utf8.ValidString(s) {
				t.Skip("protobuf carries UTF-8")
			}
		}
		a, b := request([]Entry{{k1, v1}, {k2, v2}}), request([]Entry{{k3, v3}, {k4, v4}})
		same := k1 == k3 && v1 == v3 && k2 == k4 && v2 == v4
		if equal := reflect.DeepEqual(a, b); equal != same {
			t.Errorf("%q and %q", a, b)
		}
		for _, r := range []map[string]string{a, b} {
			if len(r) != 3 {
				t.Errorf("two entries of one name: %q", r)
			}
			for name, value := range r {
				if value == "" || len(value) > Longest(name) || !utf8.ValidString(value) || len(name) > maxName {
					t.Errorf("%q: %q", name, value)
				}
			}
		}
	})
}

// request is what a descriptor becomes.
func request(entries []Entry) map[string]string {
	out := map[string]string{Shape: ShapeOf(entries)}
	for i, name := range Names(nil, entries) {
		out[name] = Value(name, entries[i].Value)
	}
	return out
}

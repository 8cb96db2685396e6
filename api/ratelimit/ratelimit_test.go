package ratelimit

import (
	"math"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFieldsOfLimits are vectors; each is also read by the parser of this test, which
// knows nothing of the writer.
func TestFieldsOfLimits(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, c := range []struct {
		name         string
		limits       []Limit
		field, quota string
	}{
		{"one", []Limit{{Policy: "search", Quota: 40, Remaining: 39, Reset: 12 * s}}, `"search";r=39;t=12`, `"search";q=40`},
		{
			"several",
			[]Limit{{Policy: "burst", Quota: 100, Remaining: 50, Reset: 30 * s, Window: 60 * s}, {Policy: "daily", Quota: 1000, Window: 24 * time.Hour, Reset: 1}},
			`"burst";r=50;t=30, "daily";r=0;t=1`, `"burst";q=100;w=60, "daily";q=1000;w=86400`,
		},
		{"reset is rounded up", []Limit{{Policy: "p", Quota: 1, Reset: 1001 * ms}}, `"p";r=0;t=2`, `"p";q=1`},
		{"fresh", []Limit{{Policy: "p", Quota: 1, Remaining: 1}}, `"p";r=1;t=0`, `"p";q=1`},
		{"reset not known", []Limit{{Policy: "p", Quota: 1, Reset: -1}}, `"p";r=0`, `"p";q=1`},
		{"window not whole", []Limit{{Policy: "p", Quota: 1, Window: 1500 * ms}}, `"p";r=0;t=0`, `"p";q=1`},
		{"window below a second", []Limit{{Policy: "p", Quota: 1, Window: 100 * ms}}, `"p";r=0;t=0`, `"p";q=1`},
		{"quoted", []Limit{{Policy: `a"b\c;q=9, "d"`, Quota: 1}}, `"a\"b\\c;q=9, \"d\"";r=0;t=0`, `"a\"b\\c;q=9, \"d\"";q=1`},
		{"largest", []Limit{{Policy: "p", Quota: math.MaxUint64, Remaining: math.MaxUint64, Reset: math.MaxInt64}}, `"p";r=999999999999999;t=9223372037`, `"p";q=999999999999999`},
		{"shadow", []Limit{{Policy: "p", Quota: 1, Shadow: true}, {Policy: "q", Quota: 2}}, `"q";r=0;t=0`, `"q";q=2`},
		{"no names", []Limit{{Quota: 1}, {Policy: "a\r\nSet-Cookie: x", Quota: 1}, {Policy: "é", Quota: 1}, {Policy: "a\x7f"}, {Policy: "\x00"}}, "", ""},
		{"none", nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Field(c.limits); got != c.field {
				t.Errorf("RateLimit: %s, want %s", got, c.field)
			}
			if got := PolicyField(c.limits); got != c.quota {
				t.Errorf("RateLimit-Policy: %s, want %s", got, c.quota)
			}
			h := http.Header{}
			Set(h, c.limits)
			if got := h.Get("RateLimit"); got != c.field {
				t.Errorf("set RateLimit: %s, want %s", got, c.field)
			}
			if got := h.Get("RateLimit-Policy"); got != c.quota {
				t.Errorf("set RateLimit-Policy: %s, want %s", got, c.quota)
			}
			if c.field == "" && len(h) > 0 {
				t.Errorf("set %v, want nothing", h)
			}
			told(t, c.limits)
		})
	}
}

// told holds both fields to what their reader gets.
func told(t *testing.T, limits []Limit) {
	t.Helper()
	var want []*Limit
	for i := range limits {
		if limits[i].told() {
			want = append(want, &limits[i])
		}
	}
	for field, check := range map[string]func(l *Limit, m member) bool{
		Field(limits): func(l *Limit, m member) bool {
			r, t := uint64(m.parameters["r"]), time.Duration(m.parameters["t"])
			_, hasT := m.parameters["t"]
			return r == min(l.Remaining, maxInteger) && hasT == (l.Reset >= 0) &&
				(!hasT || t == l.Reset/time.Second || t == l.Reset/time.Second+1)
		},
		PolicyField(limits): func(l *Limit, m member) bool {
			return uint64(m.parameters["q"]) == min(l.Quota, maxInteger)
		},
	} {
		if len(want) == 0 {
			if field != "" {
				t.Errorf("%q, want no field", field)
			}
			continue
		}
		members, err := parseList(field)
		if err != nil {
			t.Errorf("%q: %v", field, err)
			continue
		}
		if len(members) != len(want) {
			t.Errorf("%q has %d members, want %d", field, len(members), len(want))
			continue
		}
		for i, m := range members {
			if m.text != want[i].Policy || !check(want[i], m) {
				t.Errorf("%q: member %d is %+v, want that of %+v", field, i, m, want[i])
			}
		}
	}
}

// TestListsOfTwoLimitersStandTogether: two middlewares around one handler.
func TestListsOfTwoLimitersStandTogether(t *testing.T) {
	h := http.Header{}
	Set(h, []Limit{{Policy: "outer", Quota: 9, Remaining: 8}})
	Set(h, []Limit{{Policy: "inner", Quota: 5, Remaining: 4}})
	if got, want := strings.Join(h.Values("RateLimit"), ", "), `"outer";r=8;t=0, "inner";r=4;t=0`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestViolatedAreThoseThatDeny(t *testing.T) {
	got := Violated([]Limit{{Policy: "a"}, {Policy: "b", Allowed: true}, {Policy: "c", Shadow: true}, {Policy: ""}, {Policy: "d\n"}, {Policy: "e"}})
	if want := []string{"a", "e"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOlderFields(t *testing.T) {
	head := Limit{Policy: "p", Quota: 40, Remaining: 39, Reset: 1840 * time.Millisecond}
	unknown := head
	unknown.Reset = -1
	now := time.Unix(1_800_000_000, 500_000_000)
	for _, c := range []struct {
		name  string
		older Older
		head  Limit
		want  map[string]string
	}{
		{"none", Older{}, head, nil},
		{"X", Older{XRateLimit: true}, head, map[string]string{"X-RateLimit-Limit": "40", "X-RateLimit-Remaining": "39", "X-RateLimit-Reset": "1800000003"}},
		{"old", Older{RateLimit: true}, head, map[string]string{"RateLimit-Limit": "40", "RateLimit-Remaining": "39", "RateLimit-Reset": "2"}},
		{"old, epoch", Older{RateLimit: true, Epoch: true}, head, map[string]string{"RateLimit-Limit": "40", "RateLimit-Remaining": "39", "RateLimit-Reset": "1800000003"}},
		{"epoch alone", Older{Epoch: true}, head, nil},
		{"not known", Older{XRateLimit: true}, unknown, map[string]string{"X-RateLimit-Limit": "40", "X-RateLimit-Remaining": "39"}},
		{"shadow", Older{XRateLimit: true, RateLimit: true}, Limit{Policy: "p", Shadow: true}, nil},
		{"no name", Older{XRateLimit: true, RateLimit: true}, Limit{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, want := http.Header{}, http.Header{}
			for name, value := range c.want {
				want.Set(name, value)
			}
			c.older.Set(h, c.head, now)
			if !reflect.DeepEqual(h, want) {
				t.Errorf("got %v, want %v", h, want)
			}
		})
	}
}

func TestRetryAfterIsWholeSeconds(t *testing.T) {
	for _, c := range []struct {
		wait time.Duration
		want int64
	}{
		{0, 1},
		{200 * time.Millisecond, 1},
		{time.Second, 1},
		{time.Second + 1, 2},
		{1840 * time.Millisecond, 2},
		{12 * time.Second, 12},
		{math.MaxInt64, 9223372037},
	} {
		if got, ok := RetryAfter(c.wait, nil); got != c.want || !ok {
			t.Errorf("%v: %d %v, want %d", c.wait, got, ok, c.want)
		}
	}
	if got, ok := RetryAfter(-1, func(int64) int64 { return 5 }); got != 0 || ok {
		t.Errorf("never: %d %v, want no field", got, ok)
	}
}

// TestJitterOnlyAddsAndIsBounded also for a function that breaks its word.
func TestJitterOnlyAddsAndIsBounded(t *testing.T) {
	for _, c := range []struct {
		wait       time.Duration
		none, most int64
	}{{0, 1, 1}, {2 * time.Second, 2, 1}, {12 * time.Second, 12, 3}, {time.Hour, 3600, 60}, {math.MaxInt64, 9223372037, 60}} {
		for jitter, added := range map[int64]int64{math.MinInt64: 0, -1: 0, 0: 0, 1: 1, 60: c.most, math.MaxInt64: c.most} {
			asked := int64(0)
			got, _ := RetryAfter(c.wait, func(most int64) int64 { asked = most; return jitter })
			if got != c.none+added || asked != c.most {
				t.Errorf("%v with jitter %d: %d, asked for at most %d; want %d, %d", c.wait, jitter, got, asked, c.none+added, c.most)
			}
		}
	}
}

// FuzzNothingBreaksOut: whatever the ids and numbers, a field is one line that reads as
// what was written.
func FuzzNothingBreaksOut(f *testing.F) {
	f.Add("search", "daily", uint64(40), uint64(39), int64(12e9), int64(60e9))
	f.Add("a\"b", "c\\", uint64(0), uint64(math.MaxUint64), int64(-1), int64(1))
	f.Add("x\r\nSet-Cookie: a=b", "\", \"y\";r=9", uint64(1), uint64(1), int64(0), int64(0))
	f.Add("é", "", uint64(1), uint64(1), int64(math.MaxInt64), int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, a, b string, quota, remaining uint64, reset, window int64) {
		limits := []Limit{
			{Policy: a, Quota: quota, Remaining: remaining, Reset: time.Duration(reset), Window: time.Duration(window)},
			{Policy: b, Quota: remaining, Remaining: quota, Reset: time.Duration(window), Window: time.Duration(reset)},
		}
		told(t, limits)
		h := http.Header{}
		Set(h, limits)
		for _, l := range limits {
			Older{XRateLimit: true, RateLimit: true}.Set(h, l, time.Unix(1_800_000_000, 0))
		}
		for name, values := range h {
			for _, v := range values {
				if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) {
					t.Errorf("%s: %q is not printable", name, v)
				}
				if strings.HasPrefix(name, "X-") || strings.Count(name, "-") > 0 && name != HeaderPolicy {
					if _, err := strconv.ParseUint(v, 10, 64); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			}
		}
		if s, ok := RetryAfter(time.Duration(reset), func(most int64) int64 { return window }); ok != (reset >= 0) ||
			ok && (s < 1 || time.Duration(reset).Seconds() > float64(s) || float64(s) > time.Duration(reset).Seconds()*1.25+2) {
			t.Errorf("Retry-After %d %v for %v", s, ok, time.Duration(reset))
		}
	})
}

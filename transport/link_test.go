package transport_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/transport"
)

func TestOneWayCutTakesTheLinkDownOnBothSides(t *testing.T) {
	for _, d := range [][2]string{{"a", "b"}, {"b", "a"}} {
		inBubble(t, func(t *testing.T, f *field) {
			ns := f.mesh("a", "b", "c")
			time.Sleep(time.Second)
			if since, up := ns[0].Link("b"); !up || since < time.Second {
				t.Errorf("up for %v, %v", since, up)
			}
			f.net.Cut(d[0], d[1])
			began := time.Now()
			for i, other := range []string{"b", "a"} {
				f.until(func() bool { _, up := ns[i].Link(other); return !up }, "down")
			}
			if took := time.Since(began); took > 300*time.Millisecond {
				t.Errorf("cut %v noticed after %v", d, took)
			}
			time.Sleep(10 * time.Second)
			f.net.HealAll()
			began = time.Now()
			for i, other := range []string{"b", "a"} {
				f.until(func() bool { _, up := ns[i].Link(other); return up }, "up again")
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("up again after %v", took)
			}
			synctest.Wait()
			if got := ns[0].heard(); got != "+b +c -b +b" && got != "+c +b -b +b" {
				t.Errorf("a was told %q", got)
			}
			if got := ns[2].heard(); strings.Contains(got, "-") {
				t.Errorf("c was told %q", got)
			}
		})
	}
}

func TestAShortPauseKeepsTheConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		f.net.Freeze("b")
		time.Sleep(600 * time.Millisecond)
		if _, up := ns[0].Link("b"); up {
			t.Error("up over a pause of 600 ms")
		}
		f.net.Thaw("b")
		time.Sleep(100 * time.Millisecond)
		if _, up := ns[0].Link("b"); !up {
			t.Error("not up after the pause")
		}
		if ns[0].logged("cannot connect") {
			t.Error("the connection was given up")
		}
	})
}

func TestDigestsTravelWithPings(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		var mu sync.Mutex
		got := map[string]string{}
		digest := func(c *transport.Config) {
			c.Digest = func() []byte { return []byte("state of " + c.Name) }
			c.OnDigest = func(from transport.From, d []byte) {
				mu.Lock()
				defer mu.Unlock()
				got[from.Incarnation] = string(d)
			}
		}
		a, b := f.start("a", digest), f.start("b", digest)
		a.SetPeers([]string{"b"})
		_ = b
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		if got["a-1"] != "state of a" || got["b-1"] != "state of b" {
			t.Errorf("got %v", got)
		}
	})
}

func TestBothSidesDialAtOnce(t *testing.T) {
	for delay := range 5 {
		inBubble(t, func(t *testing.T, f *field) {
			for _, d := range [][2]string{{"a", "b"}, {"b", "a"}} {
				f.net.Delay(d[0], d[1], time.Duration(delay)*10*time.Millisecond)
			}
			ns := f.mesh("a", "b")
			time.Sleep(5 * time.Second)
			for i, other := range []string{"b", "a"} {
				if since, up := ns[i].Link(other); !up || since < 4*time.Second {
					t.Errorf("delay %d0 ms: link to %s: %v, %v", delay, other, since, up)
				}
			}
			if got := ns[0].heard() + ns[1].heard(); got != "+b+a" {
				t.Errorf("delay %d0 ms: told %q", delay, got)
			}
		})
	}
}

func TestDifferentClustersRefuseEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		id := func(s string) func(*transport.Config) {
			return func(c *transport.Config) { c.Cluster = func() string { return s } }
		}
		a, b, c := f.start("a", id("red")), f.start("b", id("blue")), f.start("c", id(""))
		for _, n := range []*peer{a, b, c} {
			n.SetPeers([]string{"a", "b", "c"})
		}
		time.Sleep(5 * time.Second)
		if _, up := a.Link("b"); up {
			t.Error("red and blue are linked")
		}
		for _, n := range []*peer{a, b} {
			if _, up := n.Link("c"); !up {
				t.Errorf("%s and a node without a cluster are not linked", n.name)
			}
			if !n.logged("node a belongs to cluster red, you to blue") && !n.logged("node b belongs to cluster blue, you to red") {
				t.Errorf("%s says nothing clear", n.name)
			}
		}
	})
}

func TestAClusterIDLearntLaterEndsTheLink(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		var mu sync.Mutex
		ids := map[string]string{}
		cluster := func(c *transport.Config) {
			c.Cluster = func() string {
				mu.Lock()
				defer mu.Unlock()
				return ids[c.Name]
			}
		}
		a, b := f.start("a", cluster), f.start("b", cluster)
		a.SetPeers([]string{"b"})
		time.Sleep(time.Second)
		if _, up := b.Link("a"); !up {
			t.Fatal("not linked")
		}
		mu.Lock()
		ids["a"], ids["b"] = "red", "blue"
		mu.Unlock()
		time.Sleep(time.Second)
		if _, up := a.Link("b"); up {
			t.Error("still linked")
		}
	})
}

func TestASecondProcessOfANameIsRefusedWhileTheFirstAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		second := f.start("b", func(c *transport.Config) {
			c.Incarnation, c.Network, c.Addr = "b-2", f.net.Host("b2"), "b2:7601"
		})
		second.SetPeers([]string{"a"})
		time.Sleep(5 * time.Second)
		if _, up := second.Link("a"); up {
			t.Error("the second b is linked")
		}
		if got := ns[0].heard(); got != "+b" {
			t.Errorf("a was told %q", got)
		}
		if !second.logged("another process, b-1, answers to the name b") {
			t.Error("the second b is not told why")
		}
		f.net.Kill("b")
		f.mu.Lock()
		f.addrs["b"] = "b2:7601"
		f.mu.Unlock()
		began := time.Now()
		f.until(func() bool { _, up := second.Link("a"); return up }, "linked once the first is dead")
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if got, err := ns[0].Call(t.Context(), "b", 1, []byte("x")); err != nil || string(got) != "x" {
			t.Errorf("call: %v", err)
		}
	})
}

func TestARestartedNodeIsLinkedAgainAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		time.Sleep(2 * time.Second)
		f.net.Kill("b")
		synctest.Wait()
		if got := ns[0].heard(); got != "+b -b" {
			t.Errorf("told %q at the moment of the reset", got)
		}
		time.Sleep(time.Minute)
		f.net.Revive("b")
		f.start("b", func(c *transport.Config) { c.Incarnation = "b-2" })
		began := time.Now()
		f.until(func() bool { _, up := ns[0].Link("b"); return up }, "up")
		if took := time.Since(began); took > 300*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestAHelloForAnotherNodeIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		f.start("b")
		f.addrs["c"] = "b:7601" // stale address
		_, err := a.Call(t.Context(), "c", 1, nil)
		want(t, err, fault.Unavailable)
		if !strings.Contains(fmt.Sprint(err), "this is node b, not c") {
			t.Errorf("says %v", err)
		}
	})
}

func TestALinkMadeForACallIsClosedWhenIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a, b := f.start("a"), f.start("b")
		if _, err := a.Call(t.Context(), "b", 1, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if _, up := b.Link("a"); !up {
			t.Error("closed too early")
		}
		time.Sleep(20 * time.Second)
		if _, up := b.Link("a"); up {
			t.Error("still there")
		}
		if _, err := a.Call(t.Context(), "b", 1, nil); err != nil {
			t.Fatal(err)
		}
	})
}

func TestALinkIsForgottenWhenNobodyNeedsIt(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a, b := f.start("a"), f.start("b")
		for i := range 100 {
			_, _ = a.Call(t.Context(), fmt.Sprintf("n%d", i), 1, nil)
		}
		if _, err := a.Call(t.Context(), "b", 1, nil); err != nil {
			t.Fatal(err)
		}
		c := f.start("c")
		a.SetPeers([]string{"c"})
		f.until(func() bool { _, up := a.Link("c"); return up }, "up")
		c.stop()
		if n := a.Links(); n != 102 {
			t.Errorf("%d links", n)
		}
		time.Sleep(2 * time.Minute)
		if n, m := a.Links(), b.Links(); n != 1 || m != 0 {
			t.Errorf("%d links of a are left, want that to c; %d of b", n, m)
		}
		a.SetPeers(nil)
		time.Sleep(time.Minute)
		if n := a.Links(); n != 0 {
			t.Errorf("%d links are left", n)
		}
		for range 2 {
			if _, err := a.Call(t.Context(), "b", 1, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestOnlyKnownNamesGetALink(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a", func(c *transport.Config) { c.Cluster = func() string { return "red" } })
		unknown := f.start("x", func(c *transport.Config) { c.Resolve = func(string) (string, bool) { return "a:7601", true } })
		f.mu.Lock()
		delete(f.addrs, "x")
		f.mu.Unlock()
		_, err := unknown.Call(t.Context(), "a", 1, nil)
		want(t, err, fault.Unavailable)
		if !strings.Contains(fmt.Sprint(err), "node a knows no node x") || a.Links() != 0 {
			t.Errorf("told %v; %d links", err, a.Links())
		}
		f.mu.Lock()
		f.addrs["x"] = "x:7601"
		f.mu.Unlock()
		if _, err := unknown.Call(t.Context(), "a", 1, nil); err != nil { // without a cluster id, as one just let in
			t.Error(err)
		}
	})
}

func TestStrangersDoNotFillTheLog(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		for i := range 1000 {
			c, err := f.net.Host("x").Dial(t.Context(), "a:7601")
			if err != nil {
				t.Fatal(err)
			}
			text := []byte("\x04\x00GET ")
			if i%2 == 0 {
				text = transport.Hello(fmt.Sprintf("stranger %d", i), "a")
			}
			if _, err := c.Write(text); err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(c)
			c.Close()
			time.Sleep(10 * time.Millisecond)
		}
		if n := a.lines("refused"); n < 10 || n > 20 { // a burst of 8, then one a second for 10 s
			t.Errorf("%d lines about 1000 strangers", n)
		}
		if !a.logged("left_out=") {
			t.Error("the log does not say that lines were left out")
		}
	})
}

func TestDigestsMayBeLong(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		var size, heard atomic.Int64
		size.Store(64 << 10)
		a := f.start("a", func(c *transport.Config) { c.Digest = func() []byte { return make([]byte, size.Load()) } })
		f.start("b", func(c *transport.Config) {
			c.OnDigest = func(_ transport.From, d []byte) { heard.Store(int64(len(d))) }
		})
		a.SetPeers([]string{"b"})
		time.Sleep(time.Second)
		if n := heard.Load(); n != 64<<10 {
			t.Errorf("heard %d bytes", n)
		}
		size.Add(1)
		time.Sleep(100 * time.Millisecond) // what is under way arrives
		heard.Store(0)
		time.Sleep(time.Second)
		if n := heard.Load(); n != 0 || a.lines("the digest is too long") != 1 {
			t.Errorf("heard %d bytes, %d lines in the log", n, a.lines("the digest is too long"))
		}
		if _, up := a.Link("b"); !up {
			t.Error("the link is down")
		}
	})
}

func TestPanicsOfTheNodeCostOneCall(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		var boom atomic.Bool
		boom.Store(true)
		fail := func() {
			if boom.Load() {
				panic("boom")
			}
		}
		a := f.start("a", func(c *transport.Config) {
			c.Handle = func(context.Context, transport.From, uint8, []byte) ([]byte, error) { fail(); return nil, nil }
			c.Digest = func() []byte { fail(); return []byte("d") }
			c.OnDigest = func(transport.From, []byte) { fail() }
			c.OnLink = func(string, bool) { fail() }
		})
		b := f.start("b", func(c *transport.Config) { c.Digest = func() []byte { return []byte("d") } })
		b.SetPeers([]string{"a"})
		time.Sleep(time.Second)
		_, err := b.Call(t.Context(), "a", 1, nil)
		want(t, err, fault.OutcomeUnknown)
		_, err = a.Call(t.Context(), "a", 1, nil)
		want(t, err, fault.OutcomeUnknown)
		if !a.logged("panic in a handler") {
			t.Error("nothing in the log")
		}
		if n := a.lines("panic in a handler"); n > 12 {
			t.Errorf("%d lines in a second", n)
		}
		boom.Store(false)
		if _, err = b.Call(t.Context(), "a", 1, nil); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

func TestStrangersAreTurnedAway(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		f.start("a")
		for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "", "\xff\xff", "\x08\x00RLPEER\x01\x01"} {
			c, err := f.net.Host("x").Dial(t.Context(), "a:7601")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.ReadAll(c); err != nil || time.Since(began) > time.Second {
				t.Errorf("%q: %v after %v", text, err, time.Since(began))
			}
			c.Close()
		}
	})
}

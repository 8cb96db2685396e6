package simnet_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/internal/simnet"
)

// arrivals sends numbered packets from a to b and returns those that came, in order.
func arrivals(t *testing.T, seed uint64, bend func(*simnet.Network)) (got []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New()
		n.Seed(seed)
		a, err := n.Host("a").Gossip(1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := n.Host("b").Gossip(1)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Shutdown()
		defer b.Shutdown()
		bend(n)
		for i := range 200 {
			if _, err := a.WriteTo(fmt.Append(nil, i), n.IP("b").String()+":1"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		for {
			select {
			case p := <-b.PacketCh():
				got = append(got, string(p.Buf))
			default:
				return
			}
		}
	})
	return got
}

func TestChanceIsOfTheSeedAlone(t *testing.T) {
	bends := map[string]func(*simnet.Network){
		"lost":    func(n *simnet.Network) { n.Drop("a", "b", 0.3) },
		"doubled": func(n *simnet.Network) { n.Double("a", "b", 0.2) },
		"late":    func(n *simnet.Network) { n.Jitter("a", "b", 50*time.Millisecond) },
	}
	for name, bend := range bends {
		one, same, other := arrivals(t, 1, bend), arrivals(t, 1, bend), arrivals(t, 2, bend)
		if !slices.Equal(one, same) {
			t.Errorf("%s: two runs of one seed differ", name)
		}
		if slices.Equal(one, other) {
			t.Errorf("%s: two seeds are alike", name)
		}
		slices.Sort(one)
		distinct := len(slices.Compact(slices.Clone(one)))
		switch {
		case name == "lost" && (distinct < 110 || distinct > 170),
			name == "doubled" && (distinct != 200 || len(one) < 220 || len(one) > 260),
			name == "late" && (distinct != 200 || len(one) != 200):
			t.Errorf("%s: %d packets came, %d of them distinct", name, len(one), distinct)
		}
	}
}

func TestJitterKeepsStreamsInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := pair(t, n)
		n.Jitter("a", "b", 50*time.Millisecond)
		n.Resend("a", "b", 0.5, 200*time.Millisecond)
		begun, want := time.Now(), ""
		for i := range 100 {
			text := fmt.Sprint(i, " ")
			write(t, a, text)
			want += text
		}
		read(t, b, want)
		if d := time.Since(begun); d < 200*time.Millisecond || d > 250*time.Millisecond {
			t.Errorf("the last byte came after %v", d)
		}
	})
}

func TestResetBreaksBothEnds(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := pair(t, n)
		n.Reset("b", "a")
		if _, err := a.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("write: %v", err)
		}
		if _, err := io.ReadAll(b); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read: %v", err)
		}
		if _, err := n.Host("a").Dial(t.Context(), "b:7601"); err != nil {
			t.Errorf("dial again: %v", err)
		}
	})
}

package simnet_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ringlimit/ringlimit/internal/simnet"
)

// pair opens a stream from host a to host b: the ends at a and at b.
func pair(t *testing.T, n *simnet.Network) (a, b net.Conn) {
	t.Helper()
	lis, err := n.Host("b").Listen("b:7601")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lis.Close() })
	a, err = n.Host("a").Dial(t.Context(), "b:7601")
	if err != nil {
		t.Fatal(err)
	}
	b, err = lis.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func bubble(t *testing.T, f func(*testing.T, *simnet.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, simnet.New()) })
}

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

// read reads what is there and checks it.
func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("read %q, %v; want %q", b, err, want)
	}
}

func TestBytesArriveInOrderAndEndWithEOF(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := pair(t, n)
		data := bytes.Repeat([]byte("0123456789"), 100_000) // more than a buffer holds
		var wg sync.WaitGroup
		wg.Go(func() {
			if k, err := a.Write(data); k != len(data) || err != nil {
				t.Errorf("write: %d, %v", k, err)
			}
			a.Close()
		})
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("got %d bytes, %v; want %d", len(got), err, len(data))
		}
		wg.Wait()
		if _, err := b.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write to a closed end: %v", err)
		}
	})
}

// TestWhatIsNotHeardOfTheOtherEndChangesNothing: a Write that failed where a Read would
// wait for ever is more than a host can see, and grpc tries such a connection again
// without a pause.
func TestWhatIsNotHeardOfTheOtherEndChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := pair(t, n)
		n.Cut("b", "a")
		b.Close()
		write(t, a, "into the void")
		a.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := a.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read behind the cut: %v", err)
		}
		a.SetReadDeadline(time.Time{})
		n.HealAll()
		if _, err := a.Read(make([]byte, 8)); err != io.EOF {
			t.Errorf("read after it: %v", err)
		}
		if _, err := a.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("write after it: %v", err)
		}
	})
}

func TestCutHoldsBytesBackUntilHealed(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := pair(t, n)
		n.Cut("a", "b")
		write(t, a, "held")
		write(t, b, "passes")
		read(t, a, "passes")
		b.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := b.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read over a cut: %v", err)
		}
		b.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Minute, func() { n.Heal("a", "b") })
		began := time.Now()
		read(t, b, "held")
		if took := time.Since(began); took != time.Minute {
			t.Errorf("came after %v", took)
		}
	})
}

func TestDelayKeepsOrder(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := pair(t, n)
		n.Delay("a", "b", 100*time.Millisecond)
		began := time.Now()
		write(t, a, "slow")
		n.Delay("a", "b", 0)
		write(t, a, "fast")
		read(t, b, "slowfast")
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestDeadlineWakesWhoWaits(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := pair(t, n)
		time.AfterFunc(time.Second, func() { a.SetDeadline(time.Unix(1, 0)) })
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		b.SetWriteDeadline(time.Now().Add(time.Second))
		k, err := b.Write(make([]byte, 1<<20))
		var ne net.Error
		if k == 1<<20 || !errors.As(err, &ne) || !ne.Timeout() {
			t.Errorf("write: %d, %v", k, err)
		}
	})
}

func TestKillResetsBothEnds(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := pair(t, n)
		old := n.Host("b")
		write(t, b, "last words")
		n.Kill("b")
		read(t, a, "last words")
		for name, c := range map[string]net.Conn{"far": a, "near": b} {
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s end: read: %v", name, err)
			}
			if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s end: write: %v", name, err)
			}
		}
		if _, err := n.Host("a").Dial(t.Context(), "b:7601"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial to the dead: %v", err)
		}
		n.Revive("b")
		if _, err := old.Dial(t.Context(), "a:1"); !errors.Is(err, syscall.ENETDOWN) {
			t.Errorf("dial of a former life: %v", err)
		}
		if _, err := n.Host("b").Listen("b:7601"); err != nil {
			t.Errorf("listen in the new life: %v", err)
		}
	})
}

func TestResetDoesNotCrossACut(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, _ := pair(t, n)
		n.Isolate("b")
		n.Kill("b")
		a.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		n.HealAll()
		a.SetReadDeadline(time.Time{})
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read after heal: %v", err)
		}
	})
}

func TestFrozenHostNeitherSendsNorReceives(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := pair(t, n)
		n.Freeze("b")
		write(t, a, "to b")
		write(t, b, "from b")
		for _, c := range []net.Conn{a, b} {
			c.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := c.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("read: %v", err)
			}
			c.SetReadDeadline(time.Time{})
		}
		if c, err := n.Host("a").Dial(t.Context(), "b:7601"); err != nil {
			t.Errorf("the system of a stopped process connects, got %v", err)
		} else {
			c.Close()
		}
		n.Thaw("b")
		read(t, a, "from b")
		read(t, b, "to b")
	})
}

func TestDialErrors(t *testing.T) {
	bubble(t, func(t *testing.T, n *simnet.Network) {
		a, b := n.Host("a"), n.Host("b")
		if _, err := a.Dial(t.Context(), "nobody:1"); err == nil {
			t.Error("dial to an unknown name succeeds")
		}
		if _, err := a.Dial(t.Context(), "b:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("dial to a free port: %v", err)
		}
		lis, err := b.Listen(":0")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Listen(lis.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("listen on a used port: %v", err)
		}
		if _, err := a.Listen("b:2"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("listen at another host: %v", err)
		}
		n.Cut("b", "a") // the answer would be lost
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if _, err := a.Dial(ctx, lis.Addr().String()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("dial over a cut: %v after %v", err, time.Since(began))
		}
		time.AfterFunc(time.Second, n.HealAll)
		n.Delay("a", "b", 20*time.Millisecond)
		began = time.Now()
		c, err := a.Dial(t.Context(), lis.Addr().String())
		if err != nil || time.Since(began) != time.Second {
			t.Fatalf("dial after heal: %v after %v", err, time.Since(began))
		}
		c.Close()
		lis.Close()
		if _, err := lis.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: %v", err)
		}
	})
}

package transport_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/transport"
)

func TestCallReachesTheHandlerAndKeepsErrorKinds(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		f.start("b", handler(func(ctx context.Context, from transport.From, method uint8, body []byte) ([]byte, error) {
			if method == 2 {
				return nil, fault.Field("cost", "must be at most %d", 5)
			}
			d, _ := ctx.Deadline()
			return fmt.Appendf(nil, "%v %d %s %v", from, method, body, time.Until(d).Round(10*time.Millisecond)), nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		got, err := a.Call(ctx, "b", 1, []byte("hi"))
		if err != nil || string(got) != "{a a-1} 1 hi 1s" {
			t.Errorf("answer %q, %v", got, err)
		}
		_, err = a.Call(t.Context(), "b", 2, nil)
		want(t, err, fault.InvalidArgument)
		var e *fault.Error
		if !errors.As(err, &e) || e.Field != "cost" || e.Message != "must be at most 5" {
			t.Errorf("particulars lost: %#v", e)
		}
		f.start("c")
		a.SetPeers([]string{"b", "c"})
		if _, err := a.Call(ctx, "c", 1, nil); err != nil {
			t.Errorf("a call during the first dial: %v", err)
		}
		if got, err := a.Call(ctx, "a", 7, []byte("me")); err != nil || string(got) != "me" {
			t.Errorf("call of the own node: %q, %v", got, err)
		}
	})
}

func TestCallWithoutConnectionIsUnavailable(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		_, err := a.Call(t.Context(), "nobody", 1, nil)
		want(t, err, fault.Unavailable)
		f.addrs["b"] = "b:7601"
		a.SetPeers([]string{"b"})
		time.Sleep(time.Second)
		began := time.Now()
		_, err = a.Call(t.Context(), "b", 1, nil)
		want(t, err, fault.Unavailable)
		if took := time.Since(began); took != 0 {
			t.Errorf("a node that is being redialled made a call wait %v", took)
		}
	})
}

func TestBigBodiesPass(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		body := make([]byte, 3<<20)
		for i := range body {
			body[i] = byte(i * 7)
		}
		got, err := ns[0].Call(t.Context(), "b", 1, body)
		if err != nil || string(got) != string(body) {
			t.Errorf("%d bytes back, %v", len(got), err)
		}
		_, err = ns[0].Call(t.Context(), "b", 1, make([]byte, 17<<20))
		want(t, err, fault.InvalidArgument)
		if _, err = ns[0].Call(t.Context(), "b", 1, nil); err != nil {
			t.Errorf("the link is broken by a message too long: %v", err)
		}
	})
}

func TestAnAnswerTooLongIsAnOutcomeUnknown(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		f.start("b", handler(func(context.Context, transport.From, uint8, []byte) ([]byte, error) {
			return make([]byte, 17<<20), nil
		}))
		_, err := a.Call(t.Context(), "b", 1, nil)
		want(t, err, fault.OutcomeUnknown)
	})
}

func TestPendingCallsFailWhenTheConnectionBreaks(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		stuck := handler(func(ctx context.Context, _ transport.From, _ uint8, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		a := f.start("a")
		f.start("b", stuck)
		a.SetPeers([]string{"b"})
		f.until(func() bool { _, up := a.Link("b"); return up }, "up")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				began := time.Now()
				_, err := a.Call(t.Context(), "b", 1, nil)
				want(t, err, fault.OutcomeUnknown)
				if took := time.Since(began); took != time.Second {
					t.Errorf("failed after %v, the connection broke after 1 s", took)
				}
			})
		}
		time.Sleep(time.Second)
		f.net.Kill("b")
		wg.Wait()
	})
}

func TestCallEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		f.net.Cut("b", "a")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := ns[0].Call(ctx, "b", 1, nil)
		want(t, err, fault.OutcomeUnknown)
		_, err = ns[0].Call(ctx, "b", 1, nil)
		want(t, err, fault.Deadline) // passed already: not sent
	})
}

func TestHandlersAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		release := make(chan struct{})
		a := f.start("a")
		f.start("b", handler(func(context.Context, transport.From, uint8, []byte) ([]byte, error) {
			<-release
			return nil, nil
		}))
		if _, err := a.Call(t.Context(), "b", 1, nil); err != nil && !errors.Is(err, fault.OutcomeUnknown) {
			t.Fatal(err)
		}
		results := make(chan error, 1100)
		for range 1100 {
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				defer cancel()
				_, err := a.Call(ctx, "b", 1, nil)
				results <- err
			}()
		}
		time.Sleep(500 * time.Millisecond)
		close(release)
		ok, busy := 0, 0
		for range 1100 {
			switch err := <-results; {
			case err == nil:
				ok++
			case errors.Is(err, fault.Busy):
				busy++
			default:
				t.Errorf("unexpected: %v", err)
			}
		}
		if ok != 1023 || busy != 77 { // one slot is held by the first call
			t.Errorf("%d answered, %d refused", ok, busy)
		}
	})
}

func TestOutboxIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		ns := f.mesh("a", "b")
		f.net.Freeze("b")
		results := make(chan error, 100)
		for range 100 {
			go func() {
				_, err := ns[0].Call(t.Context(), "b", 1, make([]byte, 1<<20))
				results <- err
			}()
		}
		busy := 0
		for range 100 {
			if err := <-results; errors.Is(err, fault.Busy) {
				busy++
			} else if !errors.Is(err, fault.OutcomeUnknown) && !errors.Is(err, fault.Unavailable) {
				t.Errorf("unexpected: %v", err)
			}
		}
		if busy < 80 {
			t.Errorf("%d of 100 MiB refused, want all but about 9", busy)
		}
		f.net.Thaw("b")
		f.until(func() bool { _, up := ns[0].Link("b"); return up }, "up again")
	})
}

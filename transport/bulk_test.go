package transport_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ringlimit/ringlimit/api/fault"
	"github.com/ringlimit/ringlimit/transport"
)

func TestBulkCallsHaveTheirOwnConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		f.start("b", handler(func(ctx context.Context, from transport.From, method uint8, body []byte) ([]byte, error) {
			switch method {
			case 2:
				return nil, fault.New(fault.Conflict, "no")
			case 3:
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return append([]byte(from.Node), body...), nil
		}))
		big := bytes.Repeat([]byte{7}, 256<<10)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				for range 5 {
					got, err := a.CallBulk(t.Context(), "b", 1, big)
					if err != nil || !bytes.Equal(got[1:], big) || got[0] != 'a' {
						t.Errorf("%d bytes, %v", len(got), err)
					}
				}
			})
		}
		wg.Wait()
		_, err := a.CallBulk(t.Context(), "b", 2, nil)
		want(t, err, fault.Conflict)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		if _, err = a.CallBulk(ctx, "b", 3, nil); err == nil || time.Since(begun) > 200*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		_, err = a.CallBulk(t.Context(), "nobody", 1, nil)
		want(t, err, fault.Unavailable)
		time.Sleep(2 * time.Minute) // what is idle has been closed by the other side
		if got, err := a.CallBulk(t.Context(), "b", 1, []byte("hi")); err != nil || string(got) != "ahi" {
			t.Errorf("%q, %v", got, err)
		}
		if got, err := a.CallBulk(t.Context(), "a", 1, []byte("me")); err != nil || string(got) != "me" {
			t.Errorf("call of the own node: %q, %v", got, err)
		}
	})
}

// TestIdleBulkConnectionsAreClosed, though no later call asks for one: the node may
// have left for good.
func TestIdleBulkConnectionsAreClosed(t *testing.T) {
	inBubble(t, func(t *testing.T, f *field) {
		a := f.start("a")
		b := f.start("b", handler(func(context.Context, transport.From, uint8, []byte) ([]byte, error) {
			time.Sleep(time.Second) // so that four are under way at once
			return nil, nil
		}))
		for range 2 { // closed ones are not used again
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					if _, err := a.CallBulk(t.Context(), "b", 1, nil); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if idle, _ := a.Bulks(); idle != 4 {
				t.Errorf("%d idle connections, want 4", idle)
			}
			time.Sleep(30 * time.Second)
			idle, _ := a.Bulks()
			if _, served := b.Bulks(); idle != 0 || served != 0 {
				t.Errorf("half a minute later %d connections are idle, and %d are served", idle, served)
			}
		}
	})
}

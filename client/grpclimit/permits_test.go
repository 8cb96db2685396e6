package grpclimit_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ringlimit/ringlimit/client"
)

func permitted() *fake { return &fake{decide: always(granted(), nil)} }

// TestPermitsAreReleasedHoweverItEnds: and the caller that has its answer finds them free.
func TestPermitsAreReleasedHoweverItEnds(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(context.Context) error
		want codes.Code
	}{
		"well":       {func(context.Context) error { return nil }, codes.OK},
		"an error":   {func(context.Context) error { return errors.New("no") }, codes.Unknown},
		"a panic":    {func(context.Context) error { panic("no") }, codes.Internal},
		"its caller": {func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, codes.DeadlineExceeded},
	} {
		both(t, permitted, nil, func(t *testing.T, f *fake, s *server, call func(context.Context) outcome) {
			s.handlers(func(ctx context.Context) error {
				f.wantReleased(t)
				return c.ends(ctx)
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if o := call(ctx); o.code() != c.want {
				t.Errorf("%s: %v", name, o.status)
			}
			if name == "its caller" {
				time.Sleep(time.Millisecond) // it did not wait for the server
			}
			f.wantReleased(t, "acme/p")
			if len(f.renewed) != 0 {
				t.Errorf("renewed %v", f.renewed)
			}
		})
	}
}

func TestEveryPermitIsReleasedOnce(t *testing.T) {
	d := granted()
	d.Limits = []client.Answer{
		{Allowed: true, PolicyID: "a", PermitID: "p"},
		{Allowed: true, PolicyID: "b"},
		{Allowed: true, PolicyID: "c", PermitID: "q"},
		{Allowed: true, PolicyID: "d", PermitID: "r", Shadow: true},
	}
	f := &fake{decide: always(d, nil)}
	serve(t, f, nil, func(t *testing.T, s *server) { s.call(t.Context()) })
	f.wantReleased(t, "acme/p", "acme/q", "acme/r")
}

// TestAnswerWaitsLittleForARelease: it goes on while the limiter hangs.
func TestAnswerWaitsLittleForARelease(t *testing.T) {
	gaveUp := time.Duration(0)
	f := permitted()
	serve(t, f, nil, func(t *testing.T, s *server) {
		f.release = func(ctx context.Context, _ string) (bool, error) {
			began := time.Now()
			<-ctx.Done()
			f.mu.Lock()
			defer f.mu.Unlock()
			gaveUp = time.Since(began)
			return false, ctx.Err()
		}
		if o := s.call(t.Context()); o.code() != codes.OK || o.took != 100*time.Millisecond {
			t.Errorf("%v after %v", o.status, o.took)
		}
		time.Sleep(5 * time.Second)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if gaveUp != 5*time.Second {
		t.Errorf("tried for %v", gaveUp)
	}
}

// TestPermitsAreRenewedAtHalfOfTheirTime: of what the decision says, then of what renewals do.
func TestPermitsAreRenewedAtHalfOfTheirTime(t *testing.T) {
	both(t, permitted, nil, func(t *testing.T, f *fake, s *server, call func(context.Context) outcome) {
		began := time.Now()
		renewals := 0
		f.renew = func(context.Context, string) (time.Duration, bool, error) {
			switch renewals++; renewals {
			case 2, 3:
				return 0, false, errors.New("no leader") // again when half of what is left is over
			}
			return 20 * time.Second, true, nil
		}
		s.handlers(func(ctx context.Context) error {
			select {
			case <-ctx.Done():
			case <-time.After(40 * time.Second):
			}
			return ctx.Err()
		})
		if o := call(t.Context()); o.code() != codes.OK || o.took != 40*time.Second {
			t.Errorf("%v after %v", o.status, o.took)
		}
		var at []int // seconds
		for _, r := range f.renewedAt {
			at = append(at, int(r.Sub(began)/time.Second))
		}
		if want := []int{5, 15, 20, 22, 32}; !slices.Equal(at, want) {
			t.Errorf("renewed at %v s, want %v", at, want)
		}
		f.wantReleased(t, "acme/p")
	})
}

// TestFirstRenewalIsSoonWhereTheTimeIsNotKnown: the first renewal then tells it.
func TestFirstRenewalIsSoonWhereTheTimeIsNotKnown(t *testing.T) {
	d := granted()
	d.ResetAfter = 0
	f := &fake{decide: always(d, nil)}
	serve(t, f, nil, func(t *testing.T, s *server) {
		s.handlers(func(context.Context) error { time.Sleep(6 * time.Second); return nil })
		s.call(t.Context())
	})
	if len(f.renewed) != 2 || f.renewedAt[1].Sub(f.renewedAt[0]) != 5*time.Second {
		t.Errorf("renewed at %v", f.renewedAt)
	}
}

// TestLostPermitStopsTheHandler: and the caller is not told of a cancellation that was none.
func TestLostPermitStopsTheHandler(t *testing.T) {
	lost := func() *fake {
		f := permitted()
		f.renew = func(context.Context, string) (time.Duration, bool, error) { return 0, false, nil }
		return f
	}
	both(t, lost, nil, func(t *testing.T, f *fake, s *server, call func(context.Context) outcome) {
		s.handlers(func(ctx context.Context) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), client.ErrPermitLost) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return ctx.Err()
		})
		o := call(t.Context())
		if o.code() != codes.Aborted || o.took != 5*time.Second {
			t.Errorf("%v after %v", o.status, o.took)
		}
		o.wantInfo(t, "PERMIT_LOST", nil)
		f.wantReleased(t, "acme/p")
	})
}

// TestLostPermitEndsAStreamAtItsNextMessage: also one whose handler looks at no context.
func TestLostPermitEndsAStreamAtItsNextMessage(t *testing.T) {
	f := permitted()
	f.renew = func(context.Context, string) (time.Duration, bool, error) { return 0, false, nil }
	serve(t, f, nil, func(t *testing.T, s *server) {
		s.chat = func(ss grpc.ServerStream) error {
			for {
				if err := ss.SendMsg(wrapperspb.String("x")); err != nil {
					return err
				}
				time.Sleep(2 * time.Second)
			}
		}
		if o := s.talk(t.Context(), 0); o.code() != codes.Aborted || o.text != "xxx" {
			t.Errorf("%v after %q", o.status, o.text)
		}
		s.chat = func(ss grpc.ServerStream) error {
			time.Sleep(6 * time.Second)
			return ss.RecvMsg(new(wrapperspb.StringValue))
		}
		if o := s.talk(t.Context(), 1); o.code() != codes.Aborted || o.text != "" {
			t.Errorf("%v after %q", o.status, o.text)
		}
	})
}

// TestDelayIsWaited: before the handler runs, and within the context.
func TestDelayIsWaited(t *testing.T) {
	slow := func() *fake {
		d := granted()
		d.Delay = 3 * time.Second
		return &fake{decide: always(d, nil)}
	}
	both(t, slow, nil, func(t *testing.T, f *fake, s *server, call func(context.Context) outcome) {
		ran := false
		s.handlers(func(context.Context) error { ran = true; return nil })
		if o := call(t.Context()); o.code() != codes.OK || o.took != 3*time.Second || !ran {
			t.Errorf("%v after %v", o.status, o.took)
		}
		ran = false
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if o := call(ctx); o.code() != codes.DeadlineExceeded || o.took != 0 || ran {
			t.Errorf("%v after %v, ran %v", o.status, o.took, ran) // at once: it can not be in time
		}
		f.wantReleased(t, "acme/p", "acme/p")
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if o := call(ctx); o.code() != codes.Canceled || o.took != time.Second || ran {
			t.Errorf("%v after %v, ran %v", o.status, o.took, ran)
		}
		time.Sleep(time.Millisecond)
		f.wantReleased(t, "acme/p", "acme/p", "acme/p")
	})
}
